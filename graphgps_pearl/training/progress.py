"""Progress: a line per epoch with every split's metric; in a terminal a bar below them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import lightning.pytorch as pl
from tqdm import tqdm

from graphgps_pearl.terminal import clock, width
from graphgps_pearl.training.recorder import Recorder
from graphgps_pearl.training.task import GraphTask, TrainingBatches

_LINES_PER_HEADER = 20
_BAR = "{percentage:3.0f}%|{bar}| {desc}"
_UNLIMITED = 10_000  # columns of a log file


class Progress(pl.Callback):
    """Shows a table of epochs, counted from 1, and the time left.

    Comes after the :class:`Recorder` in the list of callbacks, whose row of the epoch it reads.

    Args:
        recorder: of the same run.
        splits: a column each.
        metric: whose values they show.
    """

    def __init__(self, recorder: Recorder, splits: Sequence[str], metric: str) -> None:
        self.recorder = recorder
        self.splits = list(splits)
        self.metric = metric
        self._bar: tqdm | None = None
        self._first_epoch = 0
        self._started = 0.0
        self._batches = 0
        self._printed = 0

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Begin the table, and the bar if there is a terminal."""
        self._first_epoch = trainer.current_epoch
        self._started = time.perf_counter()
        if trainer.is_global_zero and sys.stderr.isatty():
            assert isinstance(trainer.train_dataloader, TrainingBatches)
            self._batches = trainer.train_dataloader.num_batches()
            self._bar = tqdm(
                total=(trainer.max_epochs or 0) * self._batches,
                initial=trainer.current_epoch * self._batches,
                bar_format=_BAR,
                dynamic_ncols=True,
                leave=False,
            )
            self._describe(trainer)

    def _describe(self, trainer: pl.Trainer, more: str = "") -> None:
        assert self._bar is not None
        text = f"epoch {trainer.current_epoch + 1}/{trainer.max_epochs}{more}"
        self._bar.set_description_str(text, refresh=False)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Name the epoch on the bar."""
        if self._bar is not None:
            self._describe(trainer)

    def on_train_batch_end(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Move the bar to where the run is."""
        if self._bar is not None:
            assert isinstance(pl_module, GraphTask)
            within = pl_module.batches_done
            done = trainer.current_epoch * self._batches + within
            left = self._left(done - self._bar.initial, self._bar.total - done)
            loss = float(outputs["loss"])
            self._describe(trainer, f", batch {within}/{self._batches}, loss {loss:.4f}, {clock(left)} left")
            self._bar.update(done - self._bar.n)

    def _left(self, done: int, ahead: int) -> float:
        """Seconds that so many steps ahead take, if they are like those that were done since the start."""
        return ahead * (time.perf_counter() - self._started) / max(1, done)

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Print the epoch's line."""
        if not trainer.is_global_zero:
            return
        done, total = trainer.current_epoch + 1, trainer.max_epochs or 0
        left = clock(self._left(done - self._first_epoch, total - done))
        columns = width() if sys.stdout.isatty() else _UNLIMITED
        header, line = self.lines(f"{done}/{total}", left, columns)
        if self._printed == 0:
            self._print(f"{self.metric} of each split after each epoch, * = best {self._selected} so far")
        if self._printed % _LINES_PER_HEADER == 0:
            self._print(header)
        self._printed += 1
        self._print(line)

    @property
    def _selected(self) -> str:
        return self.recorder.column.replace("_", " ")

    def lines(self, epoch: str, left: str, columns: int) -> tuple[str, str]:
        """Header and line of an epoch: the splits, then as much else as fits into so many columns."""
        row = self.recorder.last_row
        is_best = bool(row) and self.recorder.best_row.get("epoch") == row.get("epoch")
        cells = [("epoch", epoch.rjust(9), 9)]
        for split in self.splits:
            value = row.get(f"{split}_{self.metric}")
            cells.append((split, "-" if value is None else f"{value:.4f}", max(7, len(split))))
        cells.append(("", "*" if is_best else " ", 1))
        more = [("seconds", f"{row.get('seconds', 0):.1f}", 7), ("left", left, 7)]
        more += [("lr", f"{row.get('lr', 0):.1e}", 7), ("loss", f"{row.get('train_loss', 0):.4f}", 7)]
        used = sum(size + 1 for _, _, size in cells)
        for cell in more:
            used += cell[2] + 1
            if used > columns:
                break
            cells.append(cell)
        header = " ".join(title.rjust(size) for title, _, size in cells)
        return header.rstrip(), " ".join(text.rjust(size) for _, text, size in cells).rstrip()

    def _print(self, text: str) -> None:
        """A line that stays, above the bar."""
        if self._bar is not None and sys.stdout.isatty():
            self._bar.clear()
        print(text, flush=True)
        if self._bar is not None:
            self._bar.refresh()

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
