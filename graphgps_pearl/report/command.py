"""``report`` shows the comparison of what has run so far."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from graphgps_pearl.command import run_command
from graphgps_pearl.files import is_full
from graphgps_pearl.terminal import columns

log = logging.getLogger(__name__)


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
    args = parser.parse_intermixed_args(argv)
    return run_command(lambda: show(args.out_dir, args.names, args.baseline, args.split))


def show(out_dir: Path, names: Sequence[str], baseline: str | None, split: str | None) -> None:
    """Print the comparison of every dataset and task, and write the files next to the runs."""
    from graphgps_pearl.report.comparison import compare_all
    from graphgps_pearl.report.groups import grouped
    from graphgps_pearl.report.page import write_report
    from graphgps_pearl.report.rendering import as_text
    from graphgps_pearl.runs.results import find_runs

    comparisons = compare_all(grouped(find_runs(out_dir, names)), baseline, split)
    for comparison in comparisons:
        print(f"\n{as_text(comparison, columns())}")
    try:
        print(f"\nreport: {write_report(comparisons, out_dir)}")
    except OSError as error:  # finished runs can be compared in a read-only folder
        if is_full(error):
            raise
        log.warning("%s: the report's files are not written (%s)", out_dir, error.strerror)
    print(f"curves: tensorboard --logdir {out_dir} --host localhost")
