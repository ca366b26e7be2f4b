"""How fast the encodings and GPS training are, as ratios to plain implementations run in the same process.

    python scripts/benchmark.py [--suite pe|gps|epoch|scale|cost|samples ...] [--threads N ...] [--data DIR]
                                [--json FILE] [--plot FILE] [--against FILE]

Each case: warm-up, then repeats in which the two sides take turns; the median and the spread of the ratios.
With one thread the clock is the processor time of this process, so that neighbours on the machine disturb
little; with more threads it is the wall clock. Peak memory is that of a fresh process that runs one side.
Real molecules are taken from ``--data`` (as ``dataset.dir``) if they are there, synthetic ones of the same
sizes otherwise: chains with rings.

``--against FILE`` compares with the ``--json FILE`` of an earlier run on the same machine: for every case how
the ratio to the baseline of the same process has changed (above 1: faster than before). A case that
lost more than 3% makes the command fail.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed
sys.path.insert(0, str(Path(__file__).resolve().parent))

from suites import SUITES, Case, Curve

from graphgps_pearl.training.memory import keep_freed_memory

ALLOWED_LOSS = 0.03  # of speed against an earlier run
COLOURS = ("#4477aa", "#ee9944", "#228833", "#aa3377", "#777777", "#66ccee")


@dataclass
class Result:
    """One comparison: seconds (medians), the ratio baseline / ours with its spread, peak memory in MB."""

    suite: str
    case: str
    threads: int
    ours: float
    baseline: float
    ratio: float
    spread: tuple[float, float]
    ours_mb: float | None = None
    baseline_mb: float | None = None
    curve: Curve | None = None


# ---------------------------------------------------------------------------------------------- measuring


def compare(case: Case, repeats: int, threads: int) -> Result:
    """Both sides in turns: medians, and the ratios' median, least and greatest."""
    clock = time.perf_counter if case.wall or threads > 1 else time.process_time
    steps = (case.ours(), case.baseline())
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(1, 2) if case.once else range(repeats + 1):
        for step, taken in zip(steps, seconds, strict=True):
            began = clock()
            step()
            if turn:  # turn 0 is the warm-up
                taken.append((clock() - began) * case.scale)
    ratios = [b / a for a, b in zip(*seconds, strict=True)]
    ours, baseline = (statistics.median(taken) for taken in seconds)
    spread = min(ratios), max(ratios)
    return Result(
        case.suite, case.name, threads, ours, baseline, statistics.median(ratios), spread, curve=case.curve
    )


def peak_memory(args: argparse.Namespace, case: Case, side: str) -> float:
    """MB that one step adds to a fresh process."""
    command = [sys.executable, __file__, "--suite", case.suite, "--side", side, "--case", case.name]
    command += ["--peptides-batch", str(args.peptides_batch), "--threads", str(torch.get_num_threads())]
    command += ["--gps-peptides-batch", str(args.gps_peptides_batch)]
    command += ["--nodes", *map(str, args.nodes)]
    command += (["--data", args.data] if args.data else []) + (["--toy"] if args.toy else [])
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def run_side(case: Case, side: str) -> float:
    """Run one side once and say by how much the process grew, in MB."""
    step = case.ours() if side == "ours" else case.baseline()
    with contextlib.suppress(OSError):  # Linux: forget the peak of preparing, which may hide the step's
        Path("/proc/self/clear_refs").write_text("5")
    before = _high_water()
    step()
    return _high_water() - before


def _high_water() -> float:
    """The most memory this process ever had, in MB. (On Linux, getrusage begins with that of the parent.)"""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


# ---------------------------------------------------------------------------------------------- showing


def show(result: Result) -> str:
    """One line of the table."""
    low, high = result.spread
    line = f"{result.case:84s} {result.ours:9.3f} s {result.baseline:9.3f} s  {result.ratio:7.3g}x"
    line += f" ({low:.3g} to {high:.3g})"
    if result.case.endswith("-none"):
        line += f"  {1 / result.ratio:.2f} times none"
    if result.ours_mb is not None and result.baseline_mb is not None:
        line += f"  {result.ours_mb:7.0f} MB {result.baseline_mb:7.0f} MB"
    return line


def title(threads: int) -> str:
    """The head of a table."""
    clock = "1 thread, processor time" if threads == 1 else f"{threads} threads, wall clock"
    return f"\n{clock:84s} {'ours':>11s} {'baseline':>11s}    ratio (spread)  peak memory"


def plot(results: list[Result], file: Path) -> None:
    """Ratios as bars: one panel for each suite, one colour for each number of threads."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    suites = list(dict.fromkeys(r.suite for r in results))
    threads = list(dict.fromkeys(r.threads for r in results))
    cases = {s: list(dict.fromkeys(r.case for r in results if r.suite == s)) for s in suites}
    heights = [len(cases[s]) for s in suites]
    figure, panels = plt.subplots(
        *(len(suites), 1),
        figsize=(10, 1.2 + 0.5 * len(suites) + 0.5 * sum(heights)),
        height_ratios=heights,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    for suite, axes in zip(suites, panels[:, 0], strict=True):
        for number, count in enumerate(threads):
            own = [r for r in results if r.suite == suite and r.threads == count]
            where = [
                cases[suite].index(r.case) + (number - (len(threads) - 1) / 2) * 0.8 / len(threads)
                for r in own
            ]
            errors = [[r.ratio - r.spread[0] for r in own], [r.spread[1] - r.ratio for r in own]]
            bars = axes.barh(
                where,
                [r.ratio for r in own],
                height=0.8 / len(threads),
                xerr=errors,
                color=COLOURS[number % len(COLOURS)],
                label="1 thread" if count == 1 else f"{count} threads",
            )
            axes.bar_label(bars, [f" {r.ratio:.2g}" for r in own], fontsize=7)
        axes.set_yticks(range(len(cases[suite])), [textwrap.fill(c, 56) for c in cases[suite]], fontsize=8)
        axes.set_ylim(len(cases[suite]) - 0.4, -0.6)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_title(suite, loc="left", fontsize=10)
        axes.set_xscale("log")
    panels[0, 0].legend(fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=len(threads))
    panels[-1, 0].set_xlabel("times as fast as the baseline")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def plot_curves(results: list[Result], file: Path) -> None:
    """Seconds and memory against the number of nodes: a column for each family of graphs."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    points: dict[tuple[str, str, int], tuple[float, float | None]] = {}
    for r in results:
        if r.curve is not None and r.threads == results[0].threads:
            points[r.curve.family, r.curve.ours, r.curve.nodes] = r.ours, r.ours_mb
            points[r.curve.family, r.curve.baseline, r.curve.nodes] = r.baseline, r.baseline_mb
    families = list(dict.fromkeys(family for family, _, _ in points))
    names = list(dict.fromkeys(name for _, name, _ in points))
    figure, panels = plt.subplots(
        2, len(families), figsize=(10, 7), sharex=True, sharey="row", squeeze=False, layout="constrained"
    )
    for column, family in enumerate(families):
        for name, colour in zip(names, itertools.cycle(COLOURS), strict=False):
            nodes = sorted(n for f, line, n in points if (f, line) == (family, name))
            for row in (0, 1):
                values = [points[family, name, n][row] or float("nan") for n in nodes]
                panels[row, column].loglog(nodes, values, "o-", color=colour, label=name)
        panels[0, column].set_title(family, fontsize=10)
        panels[1, column].set_xlabel("nodes")
    panels[0, 0].set_ylabel("seconds of processor time")
    panels[1, 0].set_ylabel("peak memory, MB")
    for axes in panels.flat:
        axes.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=8)
    figure.savefig(file, dpi=120)
    plt.close(figure)


def changes(earlier: list[dict[str, Any]], results: list[Result]) -> list[tuple[str, int, float]]:
    """(case, threads, ratio now / ratio then) of every case that both runs have."""
    then = {(r["case"], r["threads"]): r["ratio"] for r in earlier}
    both = [r for r in results if (r.case, r.threads) in then]
    return [(r.case, r.threads, r.ratio / then[r.case, r.threads]) for r in both]


def show_changes(found: list[tuple[str, int, float]]) -> bool:
    """Print the table of :func:`changes`; whether no case lost more than :data:`ALLOWED_LOSS`."""
    print(f"\n{'speed now / then, each relative to its baseline':84s} threads   ratio")
    for case, threads, ratio in found:
        print(f"{case:84s} {threads:7d} {ratio:7.3f}{'  slower' if ratio < 1 - ALLOWED_LOSS else ''}")
    return all(ratio >= 1 - ALLOWED_LOSS for _, _, ratio in found)


def write(args: argparse.Namespace, notes: list[str], results: list[Result]) -> None:
    """The files that were asked for."""
    if args.json:
        about = {"torch": torch.__version__, "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
        measured = {"notes": notes, "results": [asdict(r) for r in results]}
        args.json.write_text(json.dumps(about | measured, indent=1))
    if args.plot and results:
        (plot_curves if all(r.curve for r in results) else plot)(results, args.plot)


# ---------------------------------------------------------------------------------------------- command line


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--suite", choices=SUITES, nargs="+", default=["pe", "gps"])
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--against", type=Path, help="a --json file of an earlier run to compare with")
    parser.add_argument("--plot", type=Path, help="write a plot here")
    parser.add_argument("--data", help="folder of the real datasets")
    parser.add_argument("--repeats", type=int, default=5)
    two = (os.cpu_count() or 1) > 1
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2] if two else [1])
    parser.add_argument(
        "--peptides-batch", type=int, default=32, help="of suite pe; smaller if it does not fit"
    )
    parser.add_argument("--gps-peptides-batch", type=int, default=32, help="of suite gps")
    parser.add_argument("--epoch-peptides", type=int, default=1000, help="of suite epoch")
    parser.add_argument(
        "--nodes",
        type=int,
        nargs="+",
        default=[100, 1_000, 3_000, 10_000, 100_000, 1_000_000],
        help="of suite scale",
    )
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--no-memory", action="store_true", help="do not measure memory")
    parser.add_argument("--toy", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--side", choices=("ours", "baseline"), help=argparse.SUPPRESS)
    parser.add_argument("--case", default="", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def items(args: argparse.Namespace) -> Iterator[Case | str]:
    """The cases and notes of the suites that were asked for."""
    for suite in args.suite:
        for item in SUITES[suite](args):
            if isinstance(item, str) or args.only in item.name:
                yield item


def main(arguments: list[str] | None = None) -> list[Result]:
    """Run the suites that were asked for."""
    args = parse(arguments)
    earlier = json.loads(args.against.read_text())["results"] if args.against else []
    torch.manual_seed(0)
    torch.set_num_threads(args.threads[0])
    keep_freed_memory()  # as a training run does, for both sides
    if args.side:
        chosen = next(item for item in items(args) if isinstance(item, Case) and item.name == args.case)
        print(run_side(chosen, args.side))
        return []
    found = list(items(args))
    notes = [item for item in found if isinstance(item, str)]
    print(*notes, sep="\n", flush=True)
    results = []
    for threads in args.threads:
        torch.set_num_threads(threads)
        print(title(threads), flush=True)
        for case in (item for item in found if isinstance(item, Case)):
            result = compare(case, args.repeats, threads)
            if case.memory and not args.no_memory and threads == args.threads[0]:
                result.ours_mb, result.baseline_mb = (
                    peak_memory(args, case, side) for side in ("ours", "baseline")
                )
            results.append(result)
            print(show(result), flush=True)
        write(args, notes, results)  # what is measured is kept, whatever comes next
    if args.against and not show_changes(changes(earlier, results)):
        raise SystemExit(1)
    return results


if __name__ == "__main__":
    main()
