"""Results of one run as a table, and of several seeds as mean and standard deviation in ``agg/``."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphgps_pearl.escaping import markdown, printable
from graphgps_pearl.files import is_full, write_atomically
from graphgps_pearl.report.comparison import selection_metric
from graphgps_pearl.report.table import markdown_table, number, text_table
from graphgps_pearl.runs.results import aggregate, alike, best_of_mean_curve, other_data, readable
from graphgps_pearl.terminal import columns, wrap

log = logging.getLogger(__name__)


def metric_names(result: Mapping[str, Any]) -> list[str]:
    """The metrics in a result, in the order they were recorded."""
    first = result["splits"][0]
    return [c.removeprefix(f"{first}_") for c in result["best"] if c.startswith(f"{first}_")]


def describe_run(result: Mapping[str, Any]) -> str:
    """A finished run for the terminal: parameters by part, and every metric at the best epoch."""
    names = metric_names(result)
    rows = [[s, *(number(result["best"].get(f"{s}_{n}")) for n in names)] for s in result["splits"]]
    parts = ", ".join(f"{part} {count:,}" for part, count in result["parameters"].items())
    total = sum(result["parameters"].values())
    epoch = f"epoch {int(result['best']['epoch']) + 1}" if result["best"] else "none, it was never a number"
    number_of_run = f"fold {result['fold']}" if "fold" in result else f"seed {result['seed']}"
    name = f"{printable(result['config'])}, {number_of_run}"
    return (
        f"{wrap(f'{name}: {total:,} parameters ({parts})', columns())}\n"
        f"best of {result['epochs']} epochs by {result['metric'].replace('_', ' ')}: "
        f"{epoch}, {result['seconds_per_epoch']:.1f} s per epoch\n\n"
        f"{text_table(['split', *names], rows, columns())}"
    )


def aggregate_rows(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows (one per split) of an aggregate, as ``mean ± std``."""
    first = summary["splits"][0]
    names = [c.removeprefix(f"{first}_") for c in summary["mean"] if c.startswith(f"{first}_")]
    rows = [[s, *(_mean(summary, f"{s}_{n}") for n in names)] for s in summary["splits"]]
    return ["split", *names], rows


def _mean(summary: Mapping[str, Any], column: str) -> str:
    """``mean ± std``, and of how many runs where some have no number."""
    count, runs = summary["count"].get(column, 0), len(summary["seeds"])
    text = f"{number(summary['mean'].get(column))} ± {number(summary['std'].get(column))}"
    return text if count == runs else f"{text} ({count} of {runs})"


def describe_folds(summary: Mapping[str, Any]) -> str:
    """What folds come to under two protocols, in a line each; empty where there are none."""
    best = summary.get("best_of_mean_curve")
    if best is None:
        return ""
    column, chosen = best["column"], summary["metric"].replace("_", " ")
    mean, std = summary["mean"].get(column), summary["std"].get(column)
    return (
        f"\n{column.replace('_', ' ')}, two protocols over {len(summary['seeds'])} folds:\n"
        f"- {number(mean)} ± {number(std)} at the epoch of each fold with the best {chosen}\n"
        f"- {number(best['mean'])} ± {number(best['std'])} at epoch {best['epoch']}, the best of the mean "
        "curve: the epoch was chosen by what is reported\n"
    )


def write_aggregate(config_folder: Path) -> dict[str, Any] | None:
    """Aggregate every finished run below ``config_folder`` into its ``agg/``; None if there is none."""
    folders = sorted((p for p in config_folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    finished = [run for run in readable(folders) if run.result is not None]
    if not finished:
        return None
    runs = alike(finished)
    if odd := other_data(runs):
        log.warning("%s: %s", config_folder, odd)
    results = [run.result for run in runs if run.result is not None]
    summary = aggregate(results)
    if len(runs) > 1 and runs[0].config.get("run_multiple_splits"):
        column = f"{summary['splits'][-1]}_{selection_metric(summary)}"
        best = best_of_mean_curve(runs, column, bool(results[0].get("larger_is_better", True)))
        summary |= {} if best is None else {"best_of_mean_curve": {"column": column, **best}}
    header, rows = aggregate_rows(summary)
    metric = summary["metric"].replace("_", " ")
    title = f"# {markdown(summary['config'])}: {len(results)} run(s), best epoch by {metric}\n\n"
    target = config_folder / "agg"
    try:
        target.mkdir(exist_ok=True)
        write_atomically(target / "results.json", json.dumps(summary, indent=2) + "\n")
        write_atomically(
            target / "results.md", title + markdown_table(header, rows) + describe_folds(summary)
        )
    except OSError as error:  # finished runs can be looked at in a read-only folder
        if is_full(error):
            raise
        log.warning("%s is not written (%s)", target, error.strerror)
    return summary
