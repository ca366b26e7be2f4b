"""How Lightning's trainer saves to the run folder, and when within an epoch; what such a checkpoint holds.

At an epoch's end the :class:`Recorder` saves. In between, this callback does: every so many batches or
seconds, and when a signal asks the run to stop. It saves between optimiser steps only, so there are no
half-accumulated gradients to keep.

To Lightning every checkpoint looks like one from an epoch's end: ``loops`` is its own bookkeeping from
there, and ``position`` says how many batches of the epoch that follows are done. ``running`` holds what that
epoch has gathered so far.
"""

from __future__ import annotations

import copy
import signal
import time
from pathlib import Path
from types import FrameType
from typing import Any

import lightning.pytorch as pl
from lightning.pytorch.plugins.io import CheckpointIO

from graphgps_pearl.processes import ENDING, StoppedError, handle_signals
from graphgps_pearl.runs.checkpoints import keep_checkpoint, new_checkpoint, read_checkpoint, write_checkpoint
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.processes import gather, largest
from graphgps_pearl.training.task import GraphTask


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


class StopSignals:
    """Remembers the first of these signals; a second Ctrl-C interrupts at once.

    Lightning's trainer puts the former handlers back when it ends.
    """

    def __init__(self) -> None:
        self.received = 0

    def install(self) -> None:
        """Take over from Lightning's handlers, which stop wherever the program happens to be."""
        handle_signals(self._note, (*ENDING, signal.SIGINT))

    def _note(self, number: int, _: FrameType | None) -> None:
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number


class Checkpointer(pl.Callback):
    """Saves every ``every_batches`` batches and every ``every_seconds`` seconds (0 = not), and on signals."""

    def __init__(self, folder: RunFolder, every_batches: int = 0, every_seconds: float = 0.0) -> None:
        self.folder = folder
        self.every_batches = every_batches
        self.every_seconds = every_seconds
        self._signals = StopSignals()
        self._saved_at, self._saved_after = 0.0, 0  # when, and after how many batches of this start's epoch
        self._loops: dict[str, Any] | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Listen to signals; keep Lightning's bookkeeping of a run that has not begun."""
        self._signals.install()
        if trainer.received_sigterm:  # a moment ago, when Lightning was still listening
            self._signals.received = signal.SIGTERM
        if self._loops is None:
            self._loops = {"fit_loop": copy.deepcopy(trainer.fit_loop.state_dict())}

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Seconds and batches between checkpoints count from here."""
        self._saved_at, self._saved_after = time.monotonic(), 0

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Save if it is time, stop if a signal said so."""
        stepped = trainer.is_last_batch or (batch_idx + 1) % trainer.accumulate_grad_batches == 0
        if stepped:
            # After the last batch an evaluation follows, and the checkpoint of the epoch.
            due = not trainer.is_last_batch and self._due(batch_idx + 1)
            if self._save_and_stop(trainer, due):
                self._saved_after = batch_idx + 1

    def _due(self, batches: int) -> bool:
        # Not a multiple of it: with accumulated gradients that may be no moment between two steps.
        by_batches = 0 < self.every_batches <= batches - self._saved_after
        return by_batches or 0 < self.every_seconds <= time.monotonic() - self._saved_at

    def on_validation_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Stop in an evaluation too; the resumed run evaluates from the start."""
        self._save_and_stop(trainer, due=False)

    def _save_and_stop(self, trainer: pl.Trainer, due: bool) -> bool:
        """Whether a checkpoint was saved."""
        signal_number, due_anywhere = largest(self._signals.received, int(due))
        if signal_number or due_anywhere:
            save_checkpoint(trainer, self.folder)
            self._saved_at = time.monotonic()
        if signal_number:
            raise StoppedError(signal_number)
        return bool(due_anywhere)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop after an epoch that was all but saved when the signal came."""
        self._stop_if_told()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Stop if the signal came after the last epoch was saved."""
        self._stop_if_told()

    def _stop_if_told(self) -> None:
        (signal_number,) = largest(self._signals.received)
        if signal_number:
            raise StoppedError(signal_number)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Say where the run is."""
        assert isinstance(pl_module, GraphTask)
        if pl_module.in_epoch:
            checkpoint["position"] = {"epoch": trainer.current_epoch, "batches": pl_module.batches_done}
            checkpoint["running"] = gather(pl_module.running_state())
            checkpoint["loops"] = self._loops
        else:
            checkpoint["position"] = {"epoch": trainer.current_epoch + 1, "batches": 0}
            self._loops = copy.deepcopy(checkpoint["loops"])

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Hand the running epoch's state to the task."""
        assert isinstance(pl_module, GraphTask)
        self._loops = checkpoint["loops"]
        if "running" in checkpoint:
            pl_module.resume(checkpoint["position"]["batches"], checkpoint["running"])
