"""How Lightning's trainer reaches the run folder's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.plugins.io import CheckpointIO

from graphgps_pearl.runs.checkpoints import keep_checkpoint, new_checkpoint, read_checkpoint, write_checkpoint
from graphgps_pearl.runs.folder import RunFolder


class LocalCheckpoints(CheckpointIO):
    """Local files (no URLs), with nothing but numbers and plain values in them."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Write a checkpoint and force it to disk."""
        write_checkpoint(Path(path), checkpoint)

    def load_checkpoint(
        self, path: Any, map_location: Any = None, weights_only: bool | None = True
    ) -> dict[str, Any]:
        """Read a checkpoint; code in it is refused."""
        return read_checkpoint(Path(path))

    def remove_checkpoint(self, path: Any) -> None:
        """Remove a checkpoint."""
        Path(path).unlink(missing_ok=True)


def save_checkpoint(trainer: pl.Trainer, folder: RunFolder, *, best: bool = False) -> None:
    """Save the run as ``last.ckpt``, a best as ``best.ckpt`` too; every process has to call it."""
    new = new_checkpoint(folder)
    try:
        trainer.save_checkpoint(new, weights_only=False)
        if trainer.is_global_zero:
            keep_checkpoint(folder, best=best)
    finally:
        if trainer.is_global_zero:
            new.unlink(missing_ok=True)
