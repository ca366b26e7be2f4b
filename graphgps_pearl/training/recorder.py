"""What happens when an epoch ends: its row is written, the best is kept, a checkpoint is saved.

All of it in one place and one order, because the order is what makes a crash harmless: the row goes
first, the checkpoint last. A checkpoint holds every row, and a resumed run writes the file again from it.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

import lightning.pytorch as pl
import torch
from torch.utils.tensorboard import SummaryWriter

from graphgps_pearl.files import write_atomically
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.checkpointer import save_checkpoint
from graphgps_pearl.training.task import GraphTask


def metric_columns(metrics: Sequence[str], splits: Sequence[str]) -> list[str]:
    """The columns of ``metrics.csv``: epoch, costs, then every metric of every split."""
    values = [f"{split}_{name}" for split in splits for name in ("loss", *metrics)]
    return ["epoch", "lr", "grad_norm", "seconds", "memory_mb", *values]


def peak_memory_mb() -> float:
    """Peak memory of this process: of the GPU if one is in use, else of the host."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.max_memory_allocated() / 2**20
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset / 2**20
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


def evaluate(trainer: pl.Trainer) -> None:
    """Run the evaluation of an epoch, as Lightning does after the last training batch."""
    trainer.validating = True
    trainer.fit_loop.epoch_loop.val_loop.run()
    trainer.training = True


class Recorder(pl.Callback):
    """Writes the run folder and decides which epoch is best and when to stop early.

    ``column`` is the selection metric, such as ``val_mae``; ``patience`` counts evaluations
    without improvement (0 never stops early). NaN is never best. Of several ``targets`` the best epoch's
    metrics are also written one by one.
    """

    def __init__(
        self,
        folder: RunFolder,
        columns: Sequence[str],
        column: str,
        larger_is_better: bool,
        patience: int = 0,
        targets: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self.columns = list(columns)
        self.column = column
        self.larger_is_better = larger_is_better
        self.patience = patience
        self.targets = tuple(targets) if len(targets) > 1 else ()
        self.best_row: dict[str, float] = {}
        self.last_row: dict[str, float] = {}
        self.stale = 0  # evaluations since the best
        self.rows: list[dict[str, float]] = []  # of metrics.csv
        self._writer: SummaryWriter | None = None
        self._started: float | None = None  # None between epochs
        self._elapsed = 0.0

    @property
    def best_value(self) -> float:
        """The best value of the selection metric so far, NaN before the first."""
        return self.best_row.get(self.column, math.nan)

    @property
    def best_epoch(self) -> int:
        """Its epoch, -1 before the first."""
        return int(self.best_row.get("epoch", -1))

    def improves(self, value: float) -> bool:
        """Whether ``value`` beats the best so far."""
        if math.isnan(value):
            return False
        if math.isnan(self.best_value):
            return True
        return value > self.best_value if self.larger_is_better else value < self.best_value

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run has to know."""
        return {
            "best_row": self.best_row,
            "last_row": self.last_row,
            "stale": self.stale,
            "rows": self.rows,
            "elapsed": 0.0 if self._started is None else time.perf_counter() - self._started,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up where the checkpoint was written."""
        self.best_row = dict(state_dict["best_row"])
        self.last_row = dict(state_dict["last_row"])
        self.stale = int(state_dict["stale"])
        self.rows = [dict(row) for row in state_dict["rows"]]
        self._elapsed = float(state_dict["elapsed"])

    def summary(self) -> dict[str, Any]:
        """The run in short: its best epoch with all metrics, and what it cost."""
        return {
            "metric": self.column,
            "larger_is_better": self.larger_is_better,
            "best": self.best_row,
            "epochs": int(self.last_row["epoch"]) + 1,
            "seconds_per_epoch": statistics.median(row["seconds"] for row in self.rows),
            "memory_mb": self.last_row["memory_mb"],
        }

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Write the rows so far, without those that are about to be written again."""
        if trainer.is_global_zero:
            self.folder.write_metrics(self.columns, self.rows)
        trainer.should_stop = self._out_of_patience()

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Start the epoch's clock, at what an interrupted epoch had taken."""
        self._started = time.perf_counter() - self._elapsed
        self._elapsed = 0.0

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Evaluate if that is left to do; then record, select, schedule, save: in this order."""
        assert isinstance(pl_module, GraphTask)
        epoch = trainer.current_epoch
        if self._evaluation_left(trainer, pl_module):
            evaluate(trainer)
        values = pl_module.epoch_values()
        costs = {
            "epoch": float(epoch),
            "lr": pl_module.lr,
            "grad_norm": statistics.fmean(pl_module.grad_norms) if pl_module.grad_norms else math.nan,
            "seconds": time.perf_counter() - (self._started or 0.0),
            "memory_mb": peak_memory_mb(),
        }
        self._started = None
        self.last_row = costs | values
        self.rows.append(self.last_row)
        improved = self.improves(values.get(self.column, math.nan))
        if improved:
            self.best_row, self.stale = dict(self.last_row), 0
            self._write_targets(pl_module, trainer.is_global_zero)
        elif self.column in values and self.best_row:
            self.stale += 1
        if trainer.is_global_zero:
            self._write(epoch)
        if pl_module.plateau is not None and self._loss_column in values:
            pl_module.plateau.step(values[self._loss_column])
        trainer.should_stop = trainer.should_stop or self._out_of_patience()
        pl_module.finish_epoch()
        save_checkpoint(trainer, self.folder, best=improved)

    def _evaluation_left(self, trainer: pl.Trainer, task: GraphTask) -> bool:
        """Whether this epoch is to be evaluated and Lightning has not done it: because the run was resumed
        after the epoch's last batch, or because this is the last epoch and no multiple of the period."""
        if any(metrics.update_called for metrics in task.epoch_metrics[1:]) or not trainer.enable_validation:
            return False
        done, period = trainer.current_epoch + 1, trainer.check_val_every_n_epoch or 1
        return done % period == 0 or done == trainer.max_epochs

    @property
    def _loss_column(self) -> str:
        return f"{self._split_of(self.column)}_loss"

    def _split_of(self, column: str) -> str | None:
        """The split whose value a column has; None: it is of training itself, such as the learning rate."""
        splits = [name.removesuffix("_loss") for name in self.columns if name.endswith("_loss")]
        # Not what is before the last "_": a custom metric may have one.
        return max((s for s in splits if column.startswith(f"{s}_")), key=len, default=None)

    def _out_of_patience(self) -> bool:
        return 0 < self.patience <= self.stale

    def _write(self, epoch: int) -> None:
        self.folder.write_metrics(self.columns, self.rows)
        if self._writer is None:
            # Not before: until training has begun a signal may end the run here and leave its thread.
            self._writer = SummaryWriter(str(self.folder.path), purge_step=epoch)
        for tag, value in self.scalars().items():
            self._writer.add_scalar(tag, value, epoch)
        self._writer.flush()

    def scalars(self) -> dict[str, float]:
        """The last epoch's values by the names that curves have: ``val/mae``, ``training/lr``."""
        tags = {}
        for column, value in self.last_row.items():
            if column != "epoch":
                split = self._split_of(column)
                tags[f"{split}/{column.removeprefix(f'{split}_')}" if split else f"training/{column}"] = value
        return tags

    def _write_targets(self, task: GraphTask, writes: bool) -> None:
        """``targets.csv``: the metrics of each target on each split at the best epoch."""
        rows = [
            {"split": split, "target": target, **values}
            for split, metrics in zip(task.splits, task.epoch_metrics, strict=True)
            if self.targets and metrics.update_called
            for target, values in zip(self.targets, metrics.per_target(), strict=False)
        ]
        if rows and writes:
            text = io.StringIO()
            table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
            write_atomically(self.folder.targets, text.getvalue())

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Close the event file."""
        self._close()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        """Close the event file, so that TensorBoard shows what there is."""
        self._close()

    def _close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):  # on a full disk its last event has no place, and is no loss
                self._writer.close()
            self._writer = None
