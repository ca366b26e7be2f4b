"""One process that trains, is stopped at random moments, resumes and reports, again and again.

It holds if every run that was stopped ends as one that was not, and if the process's memory, open files,
threads and children do not grow.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import os
import random
import shutil
import signal
import threading
import time
from pathlib import Path
from statistics import mean

from helpers.small_runs import SmallRuns, assert_same_run

from attacks.tally import Tally
from graphgps_pearl import cli

_WORDS = ("optim.max_epoch", "6", "train.ckpt_every_batches", "1")
_WARM_UP = 3  # rounds in which the libraries' own caches fill
_FEWEST = _WARM_UP + 3
#: How much each may grow from the first third of the rounds to the last. Allocators vary by some megabytes.
_MOST_GROWTH = {"memory in MB": 30.0, "open files": 0.5, "threads": 0.5, "child processes": 0.5}


def _state() -> dict[str, float]:
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    counts = (
        int(status["VmRSS"].split()[0]) / 1024,
        len(list(Path("/proc/self/fd").iterdir())),
        threading.active_count(),
        len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
    )
    return dict(zip(_MOST_GROWTH, map(float, counts), strict=True))


def grown(history: list[dict[str, float]]) -> dict[str, float]:
    """What grew by more than it may, after the warm-up: means of the first and of the last third."""
    steady = history[_WARM_UP:]
    part = max(1, len(steady) // 3)
    growth = {
        key: mean(row[key] for row in steady[-part:]) - mean(row[key] for row in steady[:part])
        for key in _MOST_GROWTH
    }
    return {key: value for key, value in growth.items() if value > _MOST_GROWTH[key]}


def attack(rounds: int, seed: int, scratch: Path) -> Tally:
    """Rounds of one run undisturbed, the same run stopped again and again, and a report on both."""
    tally, rng, history = Tally("rounds of one process"), random.Random(f"{seed} lifetime"), []
    runs = SmallRuns(scratch, scratch / "datasets")
    logging.disable(logging.WARNING)
    before = signal.signal(signal.SIGTERM, lambda *_: None)  # one that comes between two commands
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for number in range(max(rounds, _FEWEST)):
                shutil.rmtree(scratch / "results", ignore_errors=True)
                tally.attempt(f"round {number}, seed {seed}", lambda: _round(runs, rng))
                history.append(_state())
    finally:
        signal.signal(signal.SIGTERM, before)
        logging.disable(logging.NOTSET)
    for key, value in grown(history).items():
        tally.silent += 1
        tally.problems.append(f"{tally.name}: silent: {key} grew by {value:.1f}")
    return tally


def _round(runs: SmallRuns, rng: random.Random) -> bool:
    began = time.perf_counter()
    codes = {"whole": runs.train(*_WORDS, tag="whole"), "stopped": 143}
    duration = time.perf_counter() - began
    while codes["stopped"] == 128 + signal.SIGTERM:
        timer = threading.Timer(rng.uniform(0.1, duration), os.kill, [os.getpid(), signal.SIGTERM])
        timer.start()
        codes["stopped"] = runs.train(*_WORDS, tag="stopped")
        timer.cancel()
        timer.join()
    codes["report"] = cli.main(["report", str(runs.folder / "results")])
    if any(codes.values()):
        raise RuntimeError(f"exit codes {codes}")
    assert_same_run(runs.path("stopped"), runs.path("whole"))
    return True
