"""Runs that are killed or get signals at random moments, in processes forked from one that has all imports.

It holds if every start ends as it should without a traceback, no saved progress is lost, and the run that got
through all of it ends with the numbers and weights of one that nothing happened to.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from helpers import children
from helpers.small_runs import SmallRuns, assert_same_run

from attacks.tally import Tally
from graphgps_pearl.runs.checkpoints import find_checkpoint
from graphgps_pearl.runs.folder import RunFolder

_WORDS = ("optim.max_epoch", "6", "train.ckpt_every_batches", "1")
_BEGUN = b"begun\n"  # what a run's output starts with


def _position(runs: SmallRuns) -> tuple[int, int]:
    found = find_checkpoint(RunFolder(runs.path()))
    return (0, 0) if found is None else (found.epoch, found.batches)


def _expected(code: int | None, sent: signal.Signals | None) -> bool:
    if sent is None or code == 0:
        return code == 0
    return code == (-signal.SIGKILL if sent == signal.SIGKILL else 128 + sent)


def attack(
    count: int, seed: int, scratch: Path, name: str, signals: tuple[signal.Signals, ...], minutes: float
) -> Tally:
    """``count`` signals, or those of so many minutes, each to a start of the same run, again and again."""
    children.heed_signals()
    tally, rng, stopped = Tally(name), random.Random(f"{seed} {name}"), Counter[signal.Signals]()
    runs, output = SmallRuns(scratch, scratch / "datasets"), scratch / "output"
    _finish(runs, output, "warm")  # prepares the data
    began = time.perf_counter()
    _finish(runs, output, "whole")
    duration = time.perf_counter() - began
    while tally.tried < count and time.perf_counter() - began < 60 * minutes:
        was = _position(runs)
        output.write_text("")
        child = children.start(runs.arguments(*_WORDS), output, os.write, 1, _BEGUN)
        child.join(0.1 + rng.uniform(0, duration))
        sent = rng.choice(signals) if child.is_alive() else None
        if sent is not None and child.pid is not None:
            signal_child(child.pid, sent)
        child.join(300)
        if child.is_alive():
            child.kill()
            child.join()
        text = output.read_text()
        if sent is not None or not _expected(child.exitcode, sent):
            about = f"number {tally.tried}, {sent!r}: exit code {child.exitcode}, {text[-300:]!r}"
            # Before the run has said anything a signal ends it as the system does, and Ctrl-C before it has
            # begun as multiprocessing does.
            said = text.removeprefix(_BEGUN.decode())
            unbegun = not said and sent is not None and (child.exitcode == -sent or not text)
            sound = unbegun or (_expected(child.exitcode, sent) and "Traceback" not in text)
            lost = _position(runs) < was
            stopped.update([sent] if sent is not None and child.exitcode != 0 else [])
            tally.note("traceback" if not sound else "silent" if lost else "held", about)
            if tally.tried % 10 == 0:
                print(f"{name}: {tally.tried} of {count}", file=sys.stderr, flush=True)
        if child.exitcode == 0:
            _compare(tally, runs)
            shutil.rmtree(runs.path())
    _finish(runs, output, "run")
    _compare(tally, runs)
    few = [sent.name for sent in signals if stopped[sent] < tally.tried / len(signals) / 3]
    if few and tally.tried >= 20 * len(signals):
        tally.problems.append(
            f"{name}: {', '.join(few)} stopped few of {tally.tried} starts: do they arrive?"
        )
    return tally


def signal_child(pid: int, sent: signal.Signals) -> None:
    """Send a signal to a child of ours that may have ended just now."""
    try:
        os.kill(pid, sent)
    except ProcessLookupError:
        return


def _finish(runs: SmallRuns, output: Path, tag: str) -> None:
    child = children.start(runs.arguments(*_WORDS, tag=tag), output)
    child.join()
    if child.exitcode != 0:
        raise RuntimeError(f"a run that nothing happens to ends with {child.exitcode}: {output.read_text()}")


def _compare(tally: Tally, runs: SmallRuns) -> None:
    try:
        assert_same_run(runs.path(), runs.path("whole"))
    except AssertionError as error:
        tally.silent += 1
        tally.problems.append(f"{tally.name}: silent: the run ends with other numbers ({error})")
