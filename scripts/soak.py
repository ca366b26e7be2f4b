"""Train, stop, resume, overwrite and compare in a loop, and watch for what a long life would show.

    python scripts/soak.py --minutes 20

Each round trains a small run on embedded molecules in this process, stops it by SIGTERM at a random batch and
resumes it (at every batch a checkpoint is saved), kills another in a child process and resumes it, and checks
that both end with the numbers of a run that nothing happened to. After every round it notes the memory, open
files, threads and child processes of this process. It fails if one of them grows.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

CONFIG = """
base: quickstart.yaml
dataset: {subset: 100}
posenc_BPEARL: {dim_pe: 4, hidden_dim: 8, num_layers: 2}
gt: {layers: 1, dim_hidden: 16}
gnn: {dim_inner: 16}
train: {batch_size: 16, ckpt_every_batches: 1}
optim: {max_epoch: 2}
"""
ROUNDS_BEFORE_STEADY = 3  # caches of the libraries fill up in the first rounds


def state() -> dict[str, float]:
    """What must not grow: memory in MB, open files, threads, child processes."""
    gc.collect()
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        "memory": int(status["VmRSS"].split()[0]) / 1024,
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "threads": threading.active_count(),
        "children": len(children),
    }


def numbers(run: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv but for time and memory."""
    with (run / "metrics.csv").open(newline="") as file:
        return [
            {k: v for k, v in r.items() if k not in ("seconds", "memory_mb")} for r in csv.DictReader(file)
        ]


class Soak:
    """Rounds of runs in a folder of their own."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(seed)
        self.counts = {"runs": 0, "stops": 0, "kills": 0, "comparisons": 0}
        shutil.copy(ROOT / "configs" / "quickstart.yaml", folder)
        self.config = folder / "soak.yaml"
        self.config.write_text(CONFIG)

    def words(self, tag: str) -> list[str]:
        """A run's arguments."""
        where = ["out_dir", str(self.folder / "results"), "dataset.dir", str(self.folder / "datasets")]
        return ["--cfg", str(self.config), "name_tag", tag, *where]

    def path(self, tag: str) -> Path:
        """A run's folder."""
        return self.folder / "results" / f"soak-{tag}" / "0"

    def train(self, tag: str, *options: str) -> int:
        """Train in this process; the exit code."""
        from graphgps_pearl import cli

        self.counts["runs"] += 1
        return cli.train([*self.words(tag), *options])

    def stopped(self, tag: str) -> None:
        """Train with a SIGTERM at a random moment of the training, as often as it takes to get through."""
        while True:
            timer = threading.Timer(self.rng.uniform(0.2, 2.0), os.kill, [os.getpid(), signal.SIGTERM])
            timer.start()
            code = self.train(tag)
            timer.cancel()
            timer.join()
            if code == 0:
                return
            if code != 143:
                raise SystemExit(f"a run that was stopped ended with {code}")
            self.counts["stops"] += 1

    def killed(self, tag: str) -> None:
        """Train in a child process that is killed once, then in this one."""
        child = subprocess.Popen(
            [sys.executable, str(ROOT / "main.py"), *self.words(tag)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            child.wait(self.rng.uniform(4.0, 12.0))
        except subprocess.TimeoutExpired:
            child.kill()
            self.counts["kills"] += 1
        child.wait()
        if self.train(tag) != 0:
            raise SystemExit("a run that was killed did not resume")

    def round(self, with_kill: bool) -> None:
        """One run undisturbed, one stopped, one killed; all must agree, and be comparable."""
        if self.train("whole", "--overwrite") != 0:
            raise SystemExit("a run failed")
        for tag, disturb in (("stopped", self.stopped), ("killed", self.killed)):
            if tag == "killed" and not with_kill:
                continue
            shutil.rmtree(self.path(tag).parent, ignore_errors=True)
            disturb(tag)
            if numbers(self.path(tag)) != numbers(self.path("whole")):
                raise SystemExit(f"a run that was {tag} differs from one that was not")
        self._compare()

    def _compare(self) -> None:
        from graphgps_pearl.cli import main

        if main(["report", str(self.folder / "results")]) != 0:
            raise SystemExit("the comparison failed")
        self.counts["comparisons"] += 1


def growth(history: list[dict[str, float]]) -> dict[str, float]:
    """How much each quantity grew from the steady state's first third to its last (means)."""
    steady = history[ROUNDS_BEFORE_STEADY:]
    part = max(1, len(steady) // 3)

    def mean(rows: list[dict[str, float]], key: str) -> float:
        return sum(row[key] for row in rows) / len(rows)

    return {key: mean(steady[-part:], key) - mean(steady[:part], key) for key in history[0]}


def soak(minutes: float, seed: int = 0, kill_every: int = 4) -> dict[str, Any]:
    """Rounds for so many minutes; counts, and what grew."""
    history: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        rounds = Soak(Path(folder), seed)
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end or len(history) < ROUNDS_BEFORE_STEADY + 3:
            rounds.round(with_kill=len(history) % kill_every == 1)
            history.append(state())
            print(f"round {len(history)}: {history[-1]}", file=sys.stderr)
    return {"rounds": len(history), **rounds.counts, "growth": growth(history), "end": history[-1]}


def main() -> int:
    """Soak, report as JSON, and fail if something grew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--memory", type=float, default=30.0, help="MB that may be gained (allocators wander)"
    )
    args = parser.parse_args()
    logging.disable(logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: None)  # one that comes outside training is not for this script
    sys.stdout.flush()
    quiet = os.dup(1)
    with Path(os.devnull).open("w") as nothing:
        os.dup2(nothing.fileno(), 1)  # the runs' own lines
        outcome = soak(args.minutes, args.seed)
    sys.stdout.flush()
    os.dup2(quiet, 1)
    print(json.dumps(outcome, indent=2))
    grown = {key: value for key, value in outcome["growth"].items() if value > 0.5 and key != "memory"}
    if outcome["growth"]["memory"] > args.memory:
        grown["memory"] = outcome["growth"]["memory"]
    if grown:
        print(f"grew: {grown}", file=sys.stderr)
    return int(bool(grown))


if __name__ == "__main__":
    sys.exit(main())
