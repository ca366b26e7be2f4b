"""Train a run of docs/notes/runs.csv again, and compare what it reaches with what is written there.

    python scripts/reproduce.py                                        # lists the runs
    python scripts/reproduce.py zinc-bpearl-plus --epochs 100 [--seed 0] [KEY VALUE ...]

Further words go to main.py after those of the run, such as ``dataset.dir DIR`` and ``out_dir DIR``. A run
that was interrupted continues, a finished one is only compared. The same seed on another processor, another
torch or another number of threads rounds differently and is another draw: the comparison allows three times
the standard deviation between the seeds of that run, or of the runs with two seeds where it has one.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import statistics
import sys
import zlib
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed

from graphgps_pearl import config
from graphgps_pearl.processes import start_child
from graphgps_pearl.runs.folder import config_folder

ROOT = Path(__file__).resolve().parents[1]
RUNS = ROOT / "docs" / "notes" / "runs.csv"


class Run(NamedTuple):
    """One line of runs.csv; ``overrides`` has the words after the config, but for epochs and seed. ``note``
    says why a repetition with the present code may differ."""

    dataset: str
    config: str
    overrides: str
    seed: int
    epochs: int
    metric: str
    validation: float
    test: float
    note: str = ""

    @property
    def kind(self) -> tuple[str, str, int]:
        """What runs with different seeds have in common."""
        return self.config, self.overrides, self.epochs

    def command(self, words: Sequence[str] = ()) -> list[str]:
        """The arguments of main.py."""
        file = str(ROOT / "configs" / f"{self.config}.yaml")
        numbers = ["optim.max_epoch", str(self.epochs), "seed", str(self.seed)]
        # Runs of one config with other overrides or epochs have folders of their own.
        tag = f"e{self.epochs}-{zlib.crc32(self.overrides.encode()):08x}"
        return ["--cfg", file, *self.overrides.split(), *numbers, "name_tag", tag, *words]


def read_runs(file: Path) -> list[Run]:
    """The lines of a file like runs.csv."""
    kinds = {"seed": int, "epochs": int, "validation": float, "test": float}
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [Run(*(kinds.get(name, str)(row.get(name) or "") for name in Run._fields)) for row in rows]


def deviation(run: Run, runs: Sequence[Run]) -> tuple[float, str]:
    """Standard deviation of the test metric between seeds, and whose it is."""
    by_kind: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    for other in runs:
        if (other.dataset, other.metric) == (run.dataset, run.metric):
            by_kind[other.kind].append(other.test)
    if len(by_kind[run.kind]) > 1:
        return statistics.stdev(by_kind[run.kind]), f"{len(by_kind[run.kind])} seeds of this run"
    spreads = [statistics.stdev(tests) for tests in by_kind.values() if len(tests) > 1]
    if not spreads:
        return float("nan"), "unknown: no run of this dataset has two seeds"
    return max(spreads), "the largest between seeds of other runs of this dataset"


def show(run: Run, runs: Sequence[Run]) -> str:
    """The expected value with its deviation, and the command."""
    spread, whose = deviation(run, runs)
    words = " ".join(run.command()).replace(f"{ROOT}/", "")
    between = f"± {spread:.2g} ({whose})" if not math.isnan(spread) else f"(deviation {whose})"
    return (
        f"{run.config}, {run.epochs} epochs, seed {run.seed}: test {run.metric} {run.test:g} {between}, "
        f"validation {run.validation:g}{f' ({run.note})' if run.note else ''}\n    python main.py {words}"
    )


def choose(runs: Sequence[Run], args: argparse.Namespace) -> Run:
    """The run that is asked for, or a sentence that lists those that fit."""
    fits = [run for run in runs if run.config == args.config]
    fits = [run for run in fits if args.epochs in (None, run.epochs) and args.seed in (None, run.seed)]
    if args.row is not None:
        fits = fits[args.row - 1 : args.row]
    if len(fits) != 1:
        known = "\n".join(f"{n}. {show(run, runs)}" for n, run in enumerate(fits, 1)) or "none"
        raise SystemExit(f"{args.config}: {len(fits)} runs fit; give --epochs, --seed or --row\n{known}")
    return fits[0]


def main(arguments: Sequence[str] | None = None, file: Path = RUNS) -> None:
    """List the runs, or train one and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("config", nargs="?", help="a config of docs/notes/runs.csv; none = list all")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--row", type=int, help="which of the runs that fit, as listed")
    args, words = parser.parse_known_args(arguments)
    runs = read_runs(file)
    if args.config is None:
        print(*(show(run, runs) for run in runs), sep="\n")
        return
    run = choose(runs, args)
    print(show(run, runs), flush=True)
    if train([sys.executable, str(ROOT / "main.py"), *run.command(words)]):
        raise SystemExit("the run did not end well; if it was interrupted, the same command continues it")
    compare(run, runs, result_of(words, run))


def train(command: Sequence[str]) -> int:
    """Run a command to its end; its exit code. Ctrl-C reaches it too, and it is given the time to save."""
    process = start_child(command)
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            return process.wait()


def result_of(words: Sequence[str], run: Run) -> float:
    """The test metric (of DrugOOD: ood_test) at the best epoch of the run that main.py has left."""
    _, file, *own = run.command(words)
    cfg = config.load(file, own)
    folder = config_folder(Path(cfg.out_dir), Path(file), cfg.name_tag) / str(cfg.seed)
    result = json.loads((folder / "result.json").read_text())
    return result["best"].get(f"{result['splits'][-1]}_{run.metric}", math.nan)


def compare(run: Run, runs: Sequence[Run], test: float) -> None:
    """Print both, and fail where they differ by more than three deviations."""
    spread, _ = deviation(run, runs)
    verdict = "as expected" if abs(test - run.test) <= 3 * spread else "not as expected"
    if math.isnan(spread):
        verdict = "no deviation is known to compare with"
    print(f"test {run.metric} {test:.4f}, expected {run.test:g} ± {spread:.2g}: {verdict}")
    if verdict == "not as expected":
        raise SystemExit(1)


if __name__ == "__main__":
    main()
