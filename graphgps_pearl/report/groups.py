"""Runs by what they were trained for: only runs on the same graphs, task and metric are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphgps_pearl.runs.results import Run

#: Settings that decide which graphs are trained, selected and tested on.
_KEYS = (
    *("format", "name", "path", "subset", "smiles_column", "target_columns", "slic_compactness", "task_type"),
    *("split_mode", "split", "split_column"),
)


@dataclass(frozen=True)
class Group:
    """Configs that can be compared, by name, each with its runs."""

    title: str
    runs: dict[str, list[Run]]

    @property
    def slug(self) -> str:
        """The title as part of a file's name."""
        return re.sub(r"[^A-Za-z0-9]+", "-", self.title).strip("-").lower()[:60]


def grouped(runs: Mapping[str, Sequence[Run]]) -> list[Group]:
    """The runs by dataset, task and selection metric, in the order of their first configs.

    Configs without a finished run join the configs with the same dataset, where there are any.
    """
    by_key: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    waiting: dict[str, tuple[tuple[str, ...], list[Run]]] = {}
    for name, some in runs.items():
        for run in some:
            data = tuple(str(run.settings.get(f"dataset.{key}")) for key in _KEYS)
            if run.result is None:
                waiting.setdefault(name, (data, []))[1].append(run)
            else:
                key = (*data, str(run.result["metric"]), *run.result["splits"])
                by_key.setdefault(key, {}).setdefault(name, []).append(run)
    for name, (data, some) in waiting.items():
        fitting = [key for key in by_key if key[: len(data)] == data]
        key = next((k for k in fitting if name in by_key[k]), fitting[0] if fitting else data)
        by_key.setdefault(key, {}).setdefault(name, []).extend(some)
    order = {name: i for i, name in enumerate(runs)}
    groups = [dict(sorted(found.items(), key=lambda item: order[item[0]])) for found in by_key.values()]
    titles = _titles(groups)
    return [Group(title, found) for title, found in zip(titles, groups, strict=True)]


def _titles(groups: Sequence[Mapping[str, Sequence[Run]]]) -> list[str]:
    """A title for each, with as much of its settings as tells it apart."""
    runs = [next(iter(group.values()))[0] for group in groups]
    short = [_title(run, long=False) for run in runs]
    titles = [_title(run, long=short.count(title) > 1) for run, title in zip(runs, short, strict=True)]
    return [f"{t} ({i})" if titles.count(t) > 1 else t for i, t in enumerate(titles, start=1)]


def _title(run: Run, *, long: bool) -> str:
    settings = run.settings
    fmt, name = settings["dataset.format"], settings["dataset.name"]
    path = str(settings.get("dataset.path") or "")
    title = {"PyG-ZINC": f"ZINC {name}", "csv": path.rpartition("/")[2] or name}.get(fmt, name)
    if settings.get("dataset.subset"):
        title += f", {settings['dataset.subset']:,} graphs"
    title += f", {str(settings['dataset.task_type']).replace('_', ' ')}"
    if long:
        title += f", split {settings.get('dataset.split_mode')}"
        if run.result is not None:
            title += f", selected by {run.result['metric'].replace('_', ' ')}"
    return title
