"""What a person sees while runs train: which run of how many, its epoch, its metric, and the time left.

In a terminal these lines are rewritten in place; in a log file a line comes after every tenth of a run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphgps_pearl.escaping import printable
from graphgps_pearl.experiments.jobs import Job
from graphgps_pearl.files import DamagedFileError
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.terminal import LiveLines, clock, fit, width

_LINES_PER_RUN = 10  # in a log file


@dataclass(frozen=True)
class Selection:
    """What chooses a run's best epoch: a column of ``metrics.csv``, such as ``val_mae``."""

    column: str
    larger_is_better: bool

    @property
    def label(self) -> str:
        """The column for people."""
        return self.column.replace("_", " ")


@dataclass(frozen=True)
class Progress:
    """How far a job has come; values are NaN before the first evaluation."""

    epochs: int  # done, of all its folds
    of: int
    seconds: float  # of these epochs
    value: float  # of the newest epoch that was evaluated
    best: float
    best_epoch: int  # counted from 1

    @property
    def left(self) -> float:
        """Seconds, NaN if nothing is known yet."""
        return (self.of - self.epochs) * self.seconds / self.epochs if self.epochs else math.nan


def rows_so_far(folder: RunFolder) -> list[dict[str, str]]:
    """The rows of ``metrics.csv``; none where it is damaged. A run that goes on writes it again, and the
    report names the file of one that does not."""
    try:
        return folder.read_metrics()
    except DamagedFileError:
        return []


def read_progress(job: Job, selection: Selection) -> Progress:
    """From the ``metrics.csv`` of a job's runs."""
    done, seconds, value, best, best_epoch = 0, 0.0, math.nan, math.nan, 0
    for folder in job.folders:
        rows = rows_so_far(RunFolder(folder))
        if rows:  # the newest fold's best, not one over folds
            best, best_epoch = math.nan, 0
        for row in rows:
            done += 1
            seconds += float(row.get("seconds") or 0)
            found = float(row.get(selection.column) or math.nan)
            if math.isnan(found):
                continue
            value = found
            if math.isnan(best) or (found > best if selection.larger_is_better else found < best):
                best, best_epoch = found, int(row["epoch"]) + 1
    return Progress(done, job.epochs * len(job.folders), seconds, value, best, best_epoch)


class Live:
    """Prints when runs begin and end, and keeps a line for each running one.

    Args:
        total: runs in all.
        selection: of a job.
        planned: the jobs that are known already, for the time left of all; others are taken for average.
        at_once: runs at the same time.
        done: runs that ended before.
    """

    def __init__(
        self,
        total: int,
        selection: Callable[[Job], Selection],
        *,
        planned: Sequence[Job] = (),
        at_once: int = 1,
        done: int = 0,
    ) -> None:
        self.total, self.selection, self.at_once = total, selection, at_once
        self.done = done
        self.numbers: dict[Job, int] = {}
        self.progress = {job: read_progress(job, selection(job)) for job in planned}
        self.running: list[Job] = []
        self.began: dict[Job, tuple[float, float]] = {}  # moment, seconds trained before
        self.overheads: list[float] = []  # seconds of ended runs besides their epochs
        self.lines = LiveLines()

    def started(self, job: Job, log: Path) -> None:
        """Say which run begins and where its output goes."""
        self.numbers[job] = self.done + len(self.running) + 1
        self.running.append(job)
        self.began[job] = (time.monotonic(), self.refreshed(job).seconds)
        self.say(f"{self._place(job)} {job.name}: started, log {log}")
        self.tick()

    def tick(self) -> None:
        """Show how far the running ones are."""
        for job in self.running:
            before, now = self.progress[job], self.refreshed(job)
            if not self.lines.active and self._tenth(now) > self._tenth(before):
                self.say(self.line(job))
        columns = width() - 1  # a full line would wrap in some terminals
        self.lines.show([self.line(job, columns) for job in self.running])

    def stopping(self) -> None:
        """Say that runs are being saved."""
        self.say("stopping: what runs is being saved (Ctrl-C again ends it at once)")

    def ended(self, job: Job, said: str) -> None:
        """Say how a run ended."""
        place = self._place(job)
        if job in self.running:
            self.running.remove(job)
            moment, before = self.began[job]
            trained = self.refreshed(job).seconds - before
            self.overheads.append(max(0.0, time.monotonic() - moment - trained))
        self.done += 1
        self.say(f"{place} {job.name}: {said}")

    def refreshed(self, job: Job) -> Progress:
        """How far a job has come now."""
        self.progress[job] = read_progress(job, self.selection(job))
        return self.progress[job]

    def say(self, text: str) -> None:
        """A line that stays."""
        self.lines.clear()
        print(printable(text), flush=True)

    def line(self, job: Job, columns: int = 10_000) -> str:
        """A running job in one line of at most so many columns."""
        now, selection = self.progress[job], self.selection(job)
        parts = [f"{self._place(job)} {job.name}"]
        if now.epochs:
            parts = [
                f"{self._place(job)} epoch {now.epochs}/{now.of}",
                f"{selection.label} {now.value:.4f}, best {now.best:.4f}",
                f"{clock(now.left)} left",
                f"all {clock(self.left())}",
                job.name,
            ]
        else:
            parts.append("preparing")
        return printable(fit(parts, columns))

    def summary(self, job: Job) -> str:
        """What a job has come to, for the line at its end."""
        now = self.progress[job]
        if not now.best_epoch:
            return f"{now.epochs} epochs in {clock(now.seconds)}"
        return (
            f"{self.selection(job).label} {now.best:.4f} at epoch {now.best_epoch} of {now.epochs}, "
            f"{clock(now.seconds)}"
        )

    def left(self) -> float:
        """Seconds until all jobs have ended, NaN if nothing is known yet."""
        rates: dict[str, list[float]] = {}
        for job, p in self.progress.items():
            if p.epochs:
                rates.setdefault(job.folder.parent.name, []).append(p.seconds / p.epochs)
        if not rates:
            return math.nan
        means = {name: sum(some) / len(some) for name, some in rates.items()}
        usual = sum(means.values()) / len(means)
        open_ = [job for job in self.progress if not all(RunFolder(f).result.exists() for f in job.folders)]
        ahead = [
            (p.of - p.epochs) * means.get(job.folder.parent.name, usual)
            for job in open_
            if (p := self.progress[job])
        ]
        unknown = self.total - self.done - len(open_)
        lengths = [p.of for p in self.progress.values()]
        ahead += [usual * sum(lengths) / len(lengths)] * max(0, unknown)
        if self.overheads:
            waiting = len(ahead) - len(self.running)
            ahead.append(waiting * sum(self.overheads) / len(self.overheads))
        return max(sum(ahead) / self.at_once, max(ahead, default=0.0))

    def _place(self, job: Job) -> str:
        number = self.numbers.setdefault(job, self.done + len(self.running) + 1)
        return f"[{number}/{self.total}]"

    @staticmethod
    def _tenth(progress: Progress) -> int:
        return progress.epochs * _LINES_PER_RUN // max(1, progress.of)
