"""Progress: one bar for the whole run in a terminal, one line per epoch where there is none."""

from __future__ import annotations

import sys
import time
from typing import Any

import lightning.pytorch as pl
from tqdm import tqdm

from graphgps_pearl.terminal import clock
from graphgps_pearl.training.batches import TrainingBatches
from graphgps_pearl.training.recorder import Recorder
from graphgps_pearl.training.task import GraphTask


class Progress(pl.Callback):
    """Shows loss, selection metric and time left.

    Comes after the :class:`Recorder` in the list of callbacks, whose row of the epoch it reads.
    """

    def __init__(self, recorder: Recorder, eval_columns: list[str]) -> None:
        self.recorder = recorder
        self.eval_columns = eval_columns
        self._bar: tqdm | None = None
        self._first_epoch = 0
        self._started = 0.0
        self._batches = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin the bar, or note when the lines began."""
        self._first_epoch = trainer.current_epoch
        self._started = time.perf_counter()
        if trainer.is_global_zero and sys.stderr.isatty():
            assert isinstance(trainer.train_dataloader, TrainingBatches)
            self._batches = trainer.train_dataloader.num_batches()
            self._bar = tqdm(
                total=(trainer.max_epochs or 0) * self._batches,
                initial=trainer.current_epoch * self._batches,
                unit="batch",
                dynamic_ncols=True,
            )

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move the bar to where the run is."""
        if self._bar is not None:
            assert isinstance(pl_module, GraphTask)
            done = trainer.current_epoch * self._batches + pl_module.batches_done
            self._bar.set_postfix_str(self._postfix(float(outputs["loss"])), refresh=False)
            self._bar.update(done - self._bar.n)

    def _postfix(self, loss: float) -> str:
        best = self.recorder
        found = f", {best.column} {best.best_value:.4f} at epoch {best.best_epoch}" if best.best_row else ""
        return f"loss {loss:.4f}{found}"

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Name the epoch on the bar, or print its line."""
        if not trainer.is_global_zero:
            return
        done, total = trainer.current_epoch + 1, trainer.max_epochs or 0
        if self._bar is not None:
            self._bar.set_description(f"epoch {done}/{total}")
            return
        row = self.recorder.last_row
        values = " ".join(f"{c.replace('_', ' ')} {row[c]:.4f}" for c in self.eval_columns if c in row)
        best = "  * best" if self.recorder.best_epoch == trainer.current_epoch else ""
        per_epoch = (time.perf_counter() - self._started) / (done - self._first_epoch)
        print(
            f"epoch {done:>4}/{total}  {values}  lr {row['lr']:.1e}  {row['seconds']:.1f}s, "
            f"{clock(per_epoch * (total - done))} left{best}",
            flush=True,
        )

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """End the bar."""
        self._close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """End the bar before an error is shown."""
        self._close()

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
