"""Runs as processes of their own: one that fails takes nothing else down, and all end with this process.

Everything happens in one thread: processes are polled, and a signal ends the loop, which lets every run save
before it returns. If this process is killed, its runs notice (see :mod:`graphgps_pearl.processes`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Protocol

from graphgps_pearl.errors import UserError
from graphgps_pearl.processes import ENDING, StoppedError, start_child
from graphgps_pearl.runs.folder import FAILURE, RunFolder

_POLL_SECONDS, _STOP_SECONDS = 0.3, 60.0
_SIGNALS = (signal.SIGINT, *ENDING)


@dataclass(frozen=True)
class Job:
    """One process to run: a config file, overrides over it, and a seed."""

    file: Path
    seed: int
    overrides: tuple[str, ...]
    folder: Path  # <out_dir>/<config>[-name_tag]/<seed>
    epochs: int = 0  # of one run
    folds: tuple[int, ...] = ()  # of run_multiple_splits: a run each, in place of the seed's

    @property
    def name(self) -> str:
        """How the terminal calls it."""
        kind = f"{len(self.folds)} folds" if self.folds else f"seed {self.seed}"
        return f"{self.folder.parent.name}, {kind}"

    @property
    def folders(self) -> list[Path]:
        """The folders of its runs."""
        return [self.folder.with_name(str(fold)) for fold in self.folds] or [self.folder]

    def command(self) -> list[str]:
        """What trains it."""
        train = [sys.executable, "-m", "graphgps_pearl", "train", "--cfg", str(self.file)]
        return [*train, *self.overrides, "seed", str(self.seed)]


@dataclass(frozen=True)
class Ending:
    """How a run ended: ``done``, ``stopped`` by its watch, ``interrupted`` from outside, or ``failed``."""

    state: str
    said: str = ""

    def __str__(self) -> str:
        return f"{self.state}, {self.said}" if self.said else self.state


def how_to_continue(done: str, out_dir: Path) -> str:
    """What a command says that was stopped: what is ``done``, and how to go on."""
    report = f"python -m graphgps_pearl report {out_dir}"
    return f"{done}; the same command continues, and '{report}' shows what is done"


class Observer(Protocol):
    """Is told what happens to the processes."""

    def started(self, job: Job, log: Path) -> None:
        """A process began; what it prints goes to ``log``."""

    def tick(self) -> None:
        """Some time has passed."""

    def stopping(self) -> None:
        """Running processes are told to save and end."""


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    log: Path
    reason: str | None = None  # why it was told to stop


def run_jobs(
    jobs: Iterable[Job],
    at_once: int,
    ended: Callable[[Job, Ending], None],
    *,
    watch: Callable[[Job], str | None] = lambda _: None,
    observer: Observer | None = None,
) -> None:
    """Run jobs to their ends, so many at a time; the next is taken from ``jobs`` when there is room for it.

    ``ended`` is told of each. ``watch`` is asked again and again and gives the reason to stop a run, or None.
    Several at a time have one thread each. After an exception or a signal nothing more is begun, and what
    runs is told to save and end.
    """
    waiting, running = iter(jobs), list[_Running]()
    try:
        while True:
            while len(running) < at_once and (job := next(waiting, None)) is not None:
                running.append(_start(job, alone=at_once < 2))
                if observer:
                    observer.started(job, running[-1].log)
            if not running:
                return
            time.sleep(_POLL_SECONDS)
            for one in [one for one in running if one.process.poll() is not None]:
                running.remove(one)
                ended(one.job, _finish(one))
            for one in running:
                if one.reason is None and (reason := watch(one.job)):
                    one.reason = reason
                    one.process.terminate()
            if observer:
                observer.tick()
    finally:
        if running:
            if observer:
                observer.stopping()
            _stop([one.process for one in running])


def _await_end_of_former(job: Job) -> None:
    """Give the run of a killed parent the time to save; one that is trained elsewhere fails by itself."""
    deadline = time.monotonic() + _STOP_SECONDS
    for folder in job.folders:
        while folder.exists() and time.monotonic() < deadline:
            with contextlib.suppress(UserError), RunFolder(folder).locked():
                break
            time.sleep(_POLL_SECONDS)


def _start(job: Job, *, alone: bool) -> _Running:
    _await_end_of_former(job)
    environment = dict(os.environ) if alone else {"OMP_NUM_THREADS": "1", **os.environ}
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    for folder in job.folders:
        (folder / FAILURE).unlink(missing_ok=True)
    log = new_log(job.folder)
    with log.open("wb") as file:
        # A session of its own: Ctrl-C comes here, and here it is decided how runs end.
        process = start_child(
            job.command(), environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
    return _Running(job, process, log)


def new_log(folder: Path) -> Path:
    """An empty log file next to a run's folder, a new one for every start: ``0.log``, ``0.2.log``, ...

    It is not in the folder, which ``--overwrite`` replaces.
    """
    for start in count(1):
        path = folder.with_name(f"{folder.name}.log" if start == 1 else f"{folder.name}.{start}.log")
        with contextlib.suppress(FileExistsError):
            path.touch(exist_ok=False)
            return path
    raise AssertionError


def _finish(one: _Running) -> Ending:
    """How a process ended; why it ended early is left in the run's folder."""
    assert one.process.stdin is not None
    one.process.stdin.close()
    ending = _ending(one.process.returncode, one.reason, one.log)
    if ending.state in ("stopped", "failed"):
        folders = one.job.folders  # of folds, those before the one that ended early are finished
        folder = next((f for f in folders if not RunFolder(f).result.exists()), folders[-1])
        folder.mkdir(parents=True, exist_ok=True)
        text = ending.said if one.reason else f"{ending.said} (see {one.log})\n"
        (folder / FAILURE).write_text(text)
    return ending


def _ending(code: int, reason: str | None, log: Path) -> Ending:
    if code == 0:
        return Ending("done")
    if reason:
        return Ending("stopped", reason)
    if code in [128 + number for number in _SIGNALS] or code in [-number for number in _SIGNALS]:
        return Ending("interrupted", "the same command continues it")
    lines = log.read_text(errors="replace").strip().splitlines()
    return Ending("failed", lines[-1] if lines else f"exit code {code}")


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Let processes save and end; a second signal, or a minute, ends them at once."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _STOP_SECONDS
    try:
        for process in processes:
            process.wait(max(0.0, deadline - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt, StoppedError):
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
