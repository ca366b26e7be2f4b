"""Runs as processes of their own, so that one that fails takes nothing else down."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from graphgps_pearl.runs.folder import FAILURE

#: Beside the run folders, so that ``--overwrite`` of a run does not take its log.
LOG = "{}.log"
_POLL_SECONDS, _STOP_SECONDS = 0.5, 60
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Job:
    """One run to do: a config file, words over it, and a seed."""

    file: Path
    seed: int
    words: tuple[str, ...]
    folder: Path  # <out_dir>/<config>[-name_tag]/<seed>

    @property
    def name(self) -> str:
        """How the terminal calls it."""
        return f"{self.folder.parent.name}, seed {self.seed}"

    def command(self) -> list[str]:
        """What trains it."""
        train = [sys.executable, "-m", "graphgps_pearl", "train", "--cfg", str(self.file)]
        return [*train, *self.words, "seed", str(self.seed)]


@dataclass(frozen=True)
class Ending:
    """How a run ended: ``done``, ``stopped`` by its watch, ``interrupted`` from outside, or ``failed``."""

    state: str
    said: str = ""

    def __str__(self) -> str:
        return f"{self.state}, {self.said}" if self.said else self.state


def do(job: Job, *, alone: bool = True, watch: Callable[[], str | None] | None = None) -> Ending:
    """Run a job to its end, or until ``watch`` gives a reason to stop it.

    Runs beside each other (not ``alone``) have one thread each. Why a run ended early is left in its folder.
    """
    environment = dict(os.environ) if alone else {"OMP_NUM_THREADS": "1", **os.environ}
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    failure = job.folder / FAILURE
    failure.unlink(missing_ok=True)
    log = job.folder.with_name(LOG.format(job.folder.name))
    with log.open("w") as file:
        process = subprocess.Popen(job.command(), stdout=file, stderr=subprocess.STDOUT, env=environment)
        try:
            reason = _wait(process, watch)
        finally:
            _stop(process)
    ending = _ending(process.returncode, reason, log)
    if ending.state in ("stopped", "failed"):
        job.folder.mkdir(parents=True, exist_ok=True)
        failure.write_text(ending.said if reason else f"{ending.said} (see {log})\n")
    return ending


def _wait(process: subprocess.Popen[bytes], watch: Callable[[], str | None] | None) -> str | None:
    """Until the process ends (None) or its watch has a reason to stop it."""
    while watch is not None:
        try:
            process.wait(_POLL_SECONDS)
            return None
        except subprocess.TimeoutExpired:
            reason = watch()
            if reason:
                return reason
    process.wait()
    return None


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let a process save and end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _ending(code: int, reason: str | None, log: Path) -> Ending:
    if code == 0:
        return Ending("done")
    if reason:
        return Ending("stopped", reason)
    if code in [128 + number for number in _SIGNALS] or code in [-number for number in _SIGNALS]:
        return Ending("interrupted", "the same command continues it")
    lines = log.read_text(errors="replace").strip().splitlines()
    return Ending("failed", lines[-1] if lines else f"exit code {code}")


def in_turn(work: Callable[[A], B], items: Sequence[A], at_once: int) -> Iterator[B]:
    """``work`` on every item, so many at a time, results in order; after an error or an interruption nothing
    more is begun."""
    if at_once < 2:
        yield from map(work, items)
        return
    stop = threading.Event()

    def guarded(item: A) -> B:
        if stop.is_set():
            raise CancelledError
        try:
            return work(item)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(at_once) as pool:
        try:
            yield from pool.map(guarded, items)
        finally:
            stop.set()
