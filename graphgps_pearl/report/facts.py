"""What has to be known of runs to read their figures: data, schedule, size, software, machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from graphgps_pearl.report.comparison import Comparison
from graphgps_pearl.report.published import dataset_title, published, published_epochs
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.runs.results import Run
from graphgps_pearl.terminal import command_line


def facts(comparison: Comparison) -> list[tuple[str, str]]:
    """(name, value) of everything that is known, in reading order."""
    runs = [run for some in comparison.runs.values() for run in some]
    found = [
        ("dataset", comparison.title),
        ("subset", _subset(runs[0])),
        ("split sizes", _common(comparison, _sizes)),
        ("selected by", f"{comparison.selected} {comparison.metric}, the best epoch of each run"),
        ("schedule", _common(comparison, _schedule)),
        ("parameters", _parameters(comparison)),
        ("trained", _dates(runs)),
        ("versions", _distinct(map(_versions, runs))),
        ("hardware", _distinct(_read(run, "machine.json").get("hardware", "") for run in runs)),
        (
            "command of a run",
            next(filter(None, (_read(run, "machine.json").get("command") for run in runs)), ""),
        ),
        ("report", f"{datetime.now():%d %B %Y %H:%M}, {command_line()}"),
    ]
    return [(name, value) for name, value in found if value]


def published_rows(comparison: Comparison) -> list[list[str]]:
    """The published figures of the dataset that was compared on."""
    config = next(iter(comparison.runs.values()))[0].config
    return [
        [r["method"], r["setting"] or "-", r["split"], r["metric"], _with_deviation(r), r["source"]]
        for r in published(dataset_title(config))
    ]


def _with_deviation(row: Mapping[str, str]) -> str:
    return f"{row['mean']} ± {row['std']}" if row["std"] else row["mean"]


def schedule_warning(comparison: Comparison) -> str:
    """Why the published figures are not comparable, empty if nothing is known against it."""
    config = next(iter(comparison.runs.values()))[0].config
    title = dataset_title(config)
    reasons = []
    if config["dataset"].get("subset"):
        reasons.append(f"these runs saw about {config['dataset']['subset']:,} graphs, not all of {title}")
    epochs = max(line.epochs for line in comparison.lines)
    known = published_epochs(title)
    if known and epochs < known[0]:
        reasons.append(
            f"these runs trained for at most {epochs:,.0f} epochs, the published ones for {known[0]:,} to "
            f"{known[1]:,}"
        )
    return f"Not comparable with the runs above: {'; '.join(reasons)}." if reasons else ""


def _read(run: Run, name: str) -> dict[str, Any]:
    try:
        found = json.loads((run.path / name).read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _subset(run: Run) -> str:
    count = run.settings.get("dataset.subset")
    return f"about {count:,} graphs, the same share of every split" if count else "all graphs"


def _sizes(run: Run) -> str:
    sizes = _read(run, "data.json").get("sizes") or {}
    return ", ".join(f"{split} {count:,}" for split, count in sizes.items())


def _schedule(run: Run) -> str:
    s = run.settings
    return (
        f"{s['optim.max_epoch']:,} epochs, batches of {s['train.batch_size']}, {s['optim.optimizer']} with "
        f"learning rate {s['optim.base_lr']:g}, scheduler {s['optim.scheduler']}"
    )


def _common(comparison: Comparison, fact: Callable[[Run], str]) -> str:
    """A fact of every config's runs: in one line if they agree, else by config."""
    by_name = {name: _distinct(map(fact, some)) for name, some in comparison.runs.items()}
    if len(set(by_name.values())) == 1:
        return next(iter(by_name.values()))
    return "; ".join(f"{name}: {text}" for name, text in by_name.items() if text)


def _parameters(comparison: Comparison) -> str:
    totals = [line.encoder_parameters + line.network_parameters for line in comparison.lines]
    low, high = min(totals), max(totals)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _dates(runs: Iterable[Run]) -> str:
    times = sorted(RunFolder(run.path).result.stat().st_mtime for run in runs)
    first, last = (f"{datetime.fromtimestamp(t):%d %B %Y}" for t in (times[0], times[-1]))
    return first if first == last else f"{first} to {last}"


def _versions(run: Run) -> str:
    found = _read(run, "versions.json")
    names = ("graphgps_pearl", "python", "torch", "torch-geometric", "lightning")
    return ", ".join(f"{name} {found[name]}" for name in names if name in found)


def _distinct(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))
