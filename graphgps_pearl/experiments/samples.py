"""``evaluate-samples``: one trained R-PEARL model with other numbers of samples M than it was trained with.

The weights of R-PEARL do not depend on M, so no training is needed. For every M, and several tables of random
samples, the metric of a split is computed, and the encoding's error

    |P_M - P| / |P|

over the nodes of some graphs, where P is the encoding with many more samples (of another table). The error
falls like M^(-1/2), as the standard error of a mean does.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Sequence
from pathlib import Path

from graphgps_pearl.command import run_command
from graphgps_pearl.errors import UserError
from graphgps_pearl.report.comparison import spread
from graphgps_pearl.report.samples import FILE, Point, by_samples
from graphgps_pearl.report.table import text_table

SAMPLES = (1, 2, 5, 10, 20, 50, 100, 200)


def evaluate_samples(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``evaluate-samples RUN [--samples 1 2 5 ...]``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Evaluate a trained R-PEARL model with other numbers of random samples.",
        epilog=f"Writes {FILE} and two plots into the run's folder; report shows them too.",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="run folder, such as results/zinc-rpearl/0")
    parser.add_argument(
        "--samples",
        nargs="+",
        type=int,
        metavar="M",
        default=list(SAMPLES),
        help=f"numbers of samples (default: {' '.join(map(str, SAMPLES))})",
    )
    parser.add_argument(
        "--tables", type=int, default=3, metavar="T", help="tables to evaluate each M with (default: 3)"
    )
    parser.add_argument("--split", help="split to evaluate (default: the last, test)")
    args = parser.parse_args(argv)

    def work() -> None:
        if min(args.samples) < 1 or args.tables < 1:
            raise UserError("--samples and --tables: expected whole numbers from 1 up")
        if args.run.is_file():
            raise UserError(f"{args.run}: is a file; name the run folder, such as {args.run.parent}")
        from graphgps_pearl.experiments.sample_evaluation import evaluate

        name, points = evaluate(args.run, sorted(set(args.samples)), args.tables, args.split)
        rows = [
            [str(m), str(spread([p.metric for p in some])), str(spread([p.error for p in some]))]
            for m, some in by_samples(points)
        ]
        print(f"\n{text_table(['samples', name.replace('_', ' '), 'encoding error'], rows)}\n")
        # After the table: where the folder cannot be written, that is what the evaluation has come to.
        print("\n".join(f"written: {file}" for file in write(args.run, name, points)))

    return run_command(work)


def write(path: Path, name: str, points: Sequence[Point]) -> list[Path]:
    """Write ``samples.csv`` and its plots into a run folder."""
    from graphgps_pearl.files import write_atomically
    from graphgps_pearl.report.plots import png, samples_plots

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["samples", "table", name, "encoding_error"])
    writer.writerows([p.samples, p.table, p.metric, p.error] for p in points)
    write_atomically(path / FILE, buffer.getvalue())
    files = [path / FILE]
    for plot, figure in samples_plots({path.parent.name: (name, list(points))}).items():
        content = png(figure)
        files.append(path / f"{plot}.png")
        write_atomically(files[-1], content)
    return files
