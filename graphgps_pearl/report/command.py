"""``report`` shows the comparison of what has run so far."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from graphgps_pearl.command import run_command


def comparison_parser(prog: str | None, description: str) -> argparse.ArgumentParser:
    """Arguments that ``compare`` and ``report`` share."""
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument(
        "--baseline", metavar="NAME", help="config that the others are tested against, paired by seed"
    )
    parser.add_argument("--split", help="split whose metric is compared (default: the last, test)")
    return parser


def report(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``report RESULTS [NAME ...]``: the comparison of whatever has run so far."""
    parser = comparison_parser(prog, "Compare the runs in a results folder: a table, plots and report.html.")
    parser.add_argument("out_dir", metavar="RESULTS", type=Path, help="folder with <config>/<seed>/")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these configs, in this order")
    args = parser.parse_args(argv)
    return run_command(lambda: show(args.out_dir, args.names, args.baseline, args.split))


def show(out_dir: Path, names: Sequence[str], baseline: str | None, split: str | None) -> None:
    """Print the comparison and write its files beside the runs."""
    from graphgps_pearl.report.comparison import compare as compare_runs
    from graphgps_pearl.report.page import as_text, write_report
    from graphgps_pearl.runs.results import find_runs

    runs = find_runs(out_dir, names)
    comparison = compare_runs(runs, baseline, split)
    page = write_report(comparison, runs, out_dir)
    print(f"\n{as_text(comparison)}\n\nreport: {page}")
    print(f"curves: tensorboard --logdir {out_dir} --host localhost")
