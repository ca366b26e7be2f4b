"""Checkpoints on disk: each is whole or absent, two generations are kept, and reading one runs nothing.

``last.ckpt`` is the newest, ``previous.ckpt`` the one before it, ``best.ckpt`` a copy of the best epoch's. A
new one is written under another name, forced to disk and renamed, so a process killed at any moment leaves at
least one that loads.
"""

from __future__ import annotations

import io
import logging
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphgps_pearl.errors import UserError
from graphgps_pearl.files import PARTIAL, sync_folder, write_atomically, write_verified
from graphgps_pearl.runs.folder import RunFolder

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that loads, and where the run goes on: the epoch, and the batches of it already done."""

    path: Path
    epoch: int
    batches: int


def write_checkpoint(path: Path, checkpoint: Mapping[str, Any]) -> None:
    """Write a checkpoint with a checksum and force it to disk."""
    buffer = io.BytesIO()
    torch.save(dict(checkpoint), buffer)  # into a file it would not report a full disk as such
    write_verified(path, buffer.getvalue())


def new_checkpoint(folder: RunFolder) -> Path:
    """Where a checkpoint is written before :func:`keep_checkpoint`."""
    return folder.path / f".new.ckpt{PARTIAL}"


def keep_checkpoint(folder: RunFolder, *, best: bool = False) -> None:
    """The new checkpoint becomes ``last.ckpt``, that ``previous.ckpt``; a best is copied to ``best.ckpt``."""
    new = new_checkpoint(folder)
    if best:
        with new.open("rb") as source:
            write_atomically(folder.best, lambda file: shutil.copyfileobj(source, file))
    if folder.last.exists():
        folder.last.replace(folder.previous)
    new.replace(folder.last)
    sync_folder(folder.path)


def find_checkpoint(folder: RunFolder) -> Checkpoint | None:
    """The newest checkpoint that loads; a damaged ``last.ckpt`` falls back to the one before.

    The damaged one is set aside, so that the next save does not put it in the good one's place.

    If there are checkpoints and none of them loads, somebody should look: the run is not begun again.
    """
    there = [path for path in (folder.last, folder.previous) if path.exists()]
    for path in there:
        found = _read(path)
        if found is not None:
            if path != there[0]:
                there[0].replace(there[0].with_suffix(".damaged"))
            return found
    if there:
        raise UserError(
            f"{folder.path}: no checkpoint can be read; put a good one in place of last.ckpt, or give "
            "--overwrite to train from the start"
        )
    return None


def _read(path: Path) -> Checkpoint | None:
    """The checkpoint in a file, or None with a line in the log. Code in it is refused, never run."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch itself does not look at the checksums
        if damaged is not None:
            raise ValueError(f"checksum of {damaged}")
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        position = content["position"]
        return Checkpoint(path, int(position["epoch"]), int(position["batches"]))
    except Exception as error:  # many kinds for a damaged file; all mean the same here
        log.warning("%s cannot be read (%s); trying the checkpoint before it", path, type(error).__name__)
        return None
