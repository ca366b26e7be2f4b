"""Kills, signals, wrong bits, hostile folders, fuzzed configs, a long life; a table of what held.

    python scripts/attack.py                                  # a minute or two
    python scripts/attack.py --kills 200 --signals 60 --flips 1000 --configs 10000 --rounds 60 --seed 0
    python scripts/attack.py --only configs flips             # some of it

An attempt holds if it ends in one line that says what is wrong, or if what is used is what it should be. It
is silent if something wrong is used without a word; anything else is a traceback. The exit code is 1 unless
everything held.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "scripts")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

from attacks import configs, data_files, flips, folders, lifetime, processes  # noqa: E402
from attacks.tally import Tally, table  # noqa: E402
from helpers.children import SIGNALS  # noqa: E402
from helpers.small_runs import SmallRuns  # noqa: E402

from graphgps_pearl.inference.folder import write_model  # noqa: E402
from graphgps_pearl.inference.loading import load  # noqa: E402
from graphgps_pearl.runs.model_folder import SHIPPED  # noqa: E402

KINDS = ("configs", "folders", "data", "flips", "signals", "kills", "lifetime")


def flip_everything(count: int, seed: int, scratch: Path) -> list[Tally]:
    """Train a small run, export it, and damage each kind of file that this leaves."""
    runs = SmallRuns(scratch, scratch / "datasets")
    widths = ("posenc_BPEARL.dim_pe", "2", "posenc_RWSE.dim_pe", "2")
    if runs.train("dataset.node_encoder_name", "Atom+RWSE+BPEARL", *widths) != 0:
        raise SystemExit("the run to be damaged failed")
    write_model(load(runs.path(), "cpu"), scratch / "exported")
    flips.prepare(scratch / "flips", runs.path(), scratch / "datasets" / "prepared", scratch / "exported")
    return [flips.attack(kind, count, seed, scratch / "flips") for kind in flips.KINDS]


def attack(args: argparse.Namespace, scratch: Path) -> list[Tally]:
    """Everything that was asked for."""
    steps: dict[str, Callable[[], list[Tally]]] = {
        "configs": lambda: [configs.attack(args.configs, args.seed, ROOT / "configs")],
        "folders": lambda: [folders.attack(SHIPPED / "wehi-logp", scratch / "folders")],
        "data": lambda: [data_files.attack(args.flips, args.seed, scratch / "data")],
        "flips": lambda: flip_everything(args.flips, args.seed, scratch / "flipped"),
        "signals": lambda: [
            processes.attack(
                args.signals,
                args.seed,
                scratch / "signals",
                "SIGTERM, SIGINT, SIGHUP",
                SIGNALS,
                args.minutes,
            )
        ],
        "kills": lambda: [
            processes.attack(
                args.kills, args.seed, scratch / "kills", "kill -9", (signal.SIGKILL,), args.minutes
            )
        ],
        "lifetime": lambda: [lifetime.attack(args.rounds, args.seed, scratch / "lifetime")],
    }
    tallies = []
    for name in args.only:
        began = time.perf_counter()
        (scratch / {"flips": "flipped"}.get(name, name)).mkdir(parents=True)
        tallies += steps[name]()
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
    return tallies


def main(argv: list[str] | None = None) -> int:
    """Attack, print the table, and fail unless everything held."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--signals", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=6, help="of training, stops and reports in one process")
    parser.add_argument("--minutes", type=float, default=600.0, help="most time for kills, and for signals")
    parser.add_argument("--flips", type=int, default=100, help="of each kind of file")
    parser.add_argument("--configs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        tallies = attack(args, Path(scratch))
    print(table(tallies))
    problems = [problem for tally in tallies for problem in tally.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
