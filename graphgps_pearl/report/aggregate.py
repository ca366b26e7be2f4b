"""Results of one run as a table, and of several seeds as mean and standard deviation in ``agg/``."""

from __future__ import annotations

import json
import logging
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphgps_pearl.report.runs import Run, readable
from graphgps_pearl.report.table import markdown_table, number, text_table
from graphgps_pearl.training.run_folder import REPEAT_KEYS, RunFolder, first_change

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
    return (
        f"{result['config']}, seed {result['seed']}: {total:,} parameters ({parts})\n"
        f"best of {result['epochs']} epochs by {result['metric'].replace('_', ' ')}: "
        f"{epoch}, {result['seconds_per_epoch']:.1f} s per epoch\n\n"
        f"{text_table(['split', *names], rows)}"
    )


def aggregate(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation (n - 1) over the runs of one config, at each run's best epoch."""
    columns = list(dict.fromkeys(c for r in results for c in r["best"] if c != "epoch"))
    values = {c: [r["best"][c] for r in results if c in r["best"]] for c in columns}
    return {
        "config": results[0]["config"],
        "seeds": [r["seed"] for r in results],
        "metric": results[0]["metric"],
        "parameters": results[0]["parameters"],
        "splits": results[0]["splits"],
        "mean": {c: statistics.fmean(v) for c, v in values.items()},
        "std": {c: statistics.stdev(v) if len(v) > 1 else 0.0 for c, v in values.items()},
    }


def aggregate_rows(summary: Mapping[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Header and rows (one per split) of an aggregate, as ``mean ± std``."""
    first = summary["splits"][0]
    names = [c.removeprefix(f"{first}_") for c in summary["mean"] if c.startswith(f"{first}_")]
    rows = [
        [
            s,
            *(
                f"{number(summary['mean'].get(f'{s}_{n}'))} ± {number(summary['std'].get(f'{s}_{n}'))}"
                for n in names
            ),
        ]
        for s in summary["splits"]
    ]
    return ["split", *names], rows


def write_aggregate(config_folder: Path) -> dict[str, Any] | None:
    """Aggregate every finished run below ``config_folder`` into its ``agg/``; None if there is none."""
    folders = sorted((p for p in config_folder.iterdir() if p.name.isdigit()), key=lambda p: int(p.name))
    finished = [run for run in readable(folders) if run.result is not None]
    if not finished:
        return None
    results = [run.result for run in _of_one_config(finished) if run.result is not None]
    summary = aggregate(results)
    header, rows = aggregate_rows(summary)
    metric = summary["metric"].replace("_", " ")
    title = f"# {summary['config']}: {len(results)} run(s), best epoch by {metric}\n\n"
    target = RunFolder(config_folder / "agg")
    target.path.mkdir(exist_ok=True)
    target.write_text(target.path / "results.json", json.dumps(summary, indent=2) + "\n")
    target.write_text(target.path / "results.md", title + markdown_table(header, rows))
    return summary


def _of_one_config(runs: Sequence[Run]) -> list[Run]:
    """The runs whose settings are those of the newest but for the seed; others are named and left out."""
    newest = max(runs, key=lambda run: RunFolder(run.path).result.stat().st_mtime_ns)
    alike = []
    for run in runs:
        changed = first_change(run.settings, newest.settings, REPEAT_KEYS)
        if changed is None:
            alike.append(run)
        else:
            log.warning("%s is left out of the mean: it has %s", run.path, changed)
    return alike
