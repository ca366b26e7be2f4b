"""Checkpoints on disk: each is whole or absent, checked before it is used, and reading one runs nothing.

``last.ckpt`` is the newest, ``previous.ckpt`` the one before it; ``best.ckpt`` is a copy of the best epoch's,
``previous-best.ckpt`` the best before that. A new one is written under another name, forced to disk and
renamed, so a process killed at any moment leaves at least one that loads.
"""

from __future__ import annotations

import io
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphgps_pearl import files
from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.files import DamagedFileError
from graphgps_pearl.runs.folder import RunFolder

log = logging.getLogger(__name__)

_NETWORK = "network."  # how the names of a network's weights begin in a checkpoint
#: What the trainer needs of a checkpoint to continue.
_PARTS = ("state_dict", "optimizer_states", "callbacks", "loops", "position")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that loads, and where the run goes on: the epoch, and the batches of it already done, by
    so many processes."""

    path: Path
    epoch: int
    batches: int
    processes: int = 1


@dataclass(frozen=True)
class Trained:
    """Weights to predict with: the file, its content, the metrics of their epoch, and why these weights."""

    path: Path
    content: dict[str, Any]
    metrics: dict[str, float]
    chosen: str


def write_checkpoint(path: Path, checkpoint: Mapping[str, Any]) -> None:
    """Write a checkpoint with a checksum and force it to disk."""
    buffer = io.BytesIO()
    torch.save(dict(checkpoint), buffer)  # into a file it would not report a full disk as such
    files.write_verified(path, buffer.getvalue())


def read_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content, tensors and plain values; :class:`DamagedFileError` if it is not as written."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such checkpoint")
    try:
        files.verify(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except DamagedFileError:
        raise
    except Exception as error:  # many kinds for a damaged file; all mean the same here
        raise DamagedFileError(
            f"{path}: is not a checkpoint, or is damaged ({type(error).__name__})"
        ) from error
    if not isinstance(content, dict) or not isinstance(content.get("state_dict"), dict):
        raise DamagedFileError(f"{path}: is not a checkpoint of a training run")
    return content


def new_checkpoint(folder: RunFolder) -> Path:
    """Where a checkpoint is written before :func:`keep_checkpoint`."""
    return folder.path / f".new.ckpt{files.PARTIAL}"


def keep_checkpoint(folder: RunFolder, *, best: bool = False) -> None:
    """The new checkpoint becomes ``last.ckpt``, that ``previous.ckpt``; a best is copied to ``best.ckpt``."""
    new = new_checkpoint(folder)
    if best:
        if folder.best.exists() and _is_whole(folder.best):
            folder.best.replace(folder.previous_best)
        with new.open("rb") as source:
            files.write_atomically(folder.best, lambda file: shutil.copyfileobj(source, file))
    if folder.last.exists():
        folder.last.replace(folder.previous)
    new.replace(folder.last)
    files.sync_folder(folder.path)


def _is_whole(path: Path) -> bool:
    try:
        files.verify(path)
    except (OSError, DamagedFileError):
        return False
    return True


def find_checkpoint(folder: RunFolder, weights: Mapping[str, Tensor] | None = None) -> Checkpoint | None:
    """The newest checkpoint that can be continued; a damaged ``last.ckpt`` falls back to the one before.

    The damaged one is set aside, so that the next save does not put it in the good one's place. If there are
    checkpoints and none of them can be used, the run is not begun again: somebody should look.

    Args:
        weights: names and shapes that the checkpoint's weights must have.
    """
    there = [path for path in (folder.last, folder.previous) if path.exists()]
    for path in there:
        try:
            found = _position(path, weights)
        except DataError as error:
            reason = str(error).removeprefix(f"{path}: ")
            log.warning("%s cannot be read (%s); trying the checkpoint before it", path, reason)
        else:
            if path != there[0]:
                there[0].replace(there[0].with_suffix(".damaged"))
            return found
    if there:
        raise UserError(
            f"{folder.path}: no checkpoint can be read; put a good one in place of last.ckpt, or give "
            "--overwrite to train from the start"
        )
    return None


def _position(path: Path, weights: Mapping[str, Tensor] | None) -> Checkpoint:
    content = read_checkpoint(path)
    missing = [part for part in _PARTS if part not in content]
    if missing:
        raise DamagedFileError(f"{path}: has no {missing[0]}")
    found = content["state_dict"]
    for name, value in (weights or {}).items():
        if not isinstance(found.get(name), Tensor) or found[name].shape != value.shape:
            raise DamagedFileError(f"{path}: has no weights {name} of shape {tuple(value.shape)}")
    position = content["position"]
    numbers = [position.get(key) for key in ("epoch", "batches")] if isinstance(position, dict) else [None]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise DamagedFileError(f"{path}: its position {position!r} is impossible")
    running = content.get("running")  # of each process, in the middle of an epoch
    processes = len(running) if isinstance(running, list) else 1
    return Checkpoint(path, position["epoch"], position["batches"], processes)


def trained_weights(folder: RunFolder) -> Trained:
    """The best epoch's weights; the best before it, with a line, where ``best.ckpt`` is missing or damaged.

    Weights that were not chosen by validation are never taken in place of those that were.
    """
    if not (folder.best.exists() or folder.previous_best.exists() or folder.last.exists()):
        raise DataError(f"{folder.path}: has no checkpoint; train it first (python main.py --cfg ...)")
    problems = []
    for path in (folder.best, folder.previous_best):
        try:
            found = weights_of(path)
        except DataError as error:
            problems.append(str(error))
            continue
        if problems:
            epoch = f"epoch {int(found.metrics['epoch']) + 1}" if found.metrics else "an earlier epoch"
            log.warning("%s; using %s, the best before it (%s)", problems[0], path.name, epoch)
        return found
    problem = problems[0] if folder.best.exists() else f"{folder.path}: has no best.ckpt"
    raise DataError(
        f"{problem}; no other epoch chosen by validation is kept. Name {folder.last} to use the last weights"
    )


def network_weights(trained: Trained) -> dict[str, Tensor]:
    """The network's weights by their names in the network."""
    content = trained.content["state_dict"]
    return {
        name.removeprefix(_NETWORK): value for name, value in content.items() if name.startswith(_NETWORK)
    }


def weights_of(path: Path) -> Trained:
    """The weights in one checkpoint, and what is known of their epoch."""
    content = read_checkpoint(path)
    if path.name in (RunFolder(path.parent).best.name, RunFolder(path.parent).previous_best.name):
        kind = "chosen by validation"
        if path.name != RunFolder(path.parent).best.name:
            kind = "the best but one by validation, since best.ckpt was missing or damaged"
        return Trained(path, content, _row(content, "best_row"), kind)
    position = content.get("position")
    batches = position.get("batches", 0) if isinstance(position, Mapping) else 0
    if batches:  # in the middle of an epoch, which has no metrics yet
        return Trained(path, content, {}, f"the last that were saved ({batches} batches into an epoch)")
    return Trained(path, content, _row(content, "last_row"), "the last that were saved, not chosen")


def _row(content: Mapping[str, Any], name: str) -> dict[str, float]:
    callbacks = content.get("callbacks")
    for state in callbacks.values() if isinstance(callbacks, Mapping) else ():
        if isinstance(state, Mapping) and isinstance(state.get(name), Mapping):
            return dict(state[name])
    return {}
