"""Checkpoints on disk: each is whole or absent, two generations are kept, and reading one runs nothing.

``last.ckpt`` is the newest, ``previous.ckpt`` the one before it, ``best.ckpt`` a copy of the best epoch's. A
new one is written beside them, forced to disk and renamed, so a process killed at any moment leaves at least
one that loads.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.plugins.io import CheckpointIO

from graphgps_pearl.errors import UserError
from graphgps_pearl.training.run_folder import RunFolder, sync_folder, write_atomically

log = logging.getLogger(__name__)


class LocalCheckpoints(CheckpointIO):
    """Lightning's way to files: local ones (no URLs), with nothing but numbers and plain values in them."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint and force it to disk."""
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)  # into a file it would not report a full disk as such
        write_bytes(Path(path), buffer.getvalue())

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        """Read a checkpoint; code in it is refused."""
        return torch.load(path, map_location="cpu", weights_only=True)

    def remove_checkpoint(self, path: Any) -> None:
        """Remove a checkpoint."""
        Path(path).unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file and force it to disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that loads, and where the run goes on: the epoch, and the batches of it already done."""

    path: Path
    epoch: int
    batches: int


def save_checkpoint(trainer: pl.Trainer, folder: RunFolder, *, best: bool = False) -> None:
    """Write ``last.ckpt``, keep the one before as ``previous.ckpt``; the best is copied to ``best.ckpt``."""
    fresh = folder.path / ".fresh.ckpt"
    try:
        trainer.save_checkpoint(fresh, weights_only=False)
        if not trainer.is_global_zero:
            return
        if best:
            write_atomically(folder.best, lambda temporary: shutil.copyfile(fresh, temporary))
        if folder.last.exists():
            folder.last.replace(folder.previous)
        fresh.replace(folder.last)
        sync_folder(folder.path)
    finally:
        if trainer.is_global_zero:
            fresh.unlink(missing_ok=True)


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
