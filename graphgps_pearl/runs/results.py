"""Finding runs on disk, saying in which state each of them is, and the mean over seeds."""

from __future__ import annotations

import json
import logging
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from graphgps_pearl.errors import UserError
from graphgps_pearl.files import DamagedFileError
from graphgps_pearl.runs.folder import FAILURE, REPEAT_KEYS, RunFolder, first_change, settings, stored_config

log = logging.getLogger(__name__)

_UNREADABLE = (OSError, ValueError, TypeError, AttributeError, UserError, yaml.YAMLError)


@dataclass(frozen=True)
class Run:
    """One run folder: ``<out_dir>/<config>/<seed>``."""

    path: Path
    result: dict[str, Any] | None
    failure: str = ""
    rows: list[dict[str, str]] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """The config's name, with its tag."""
        return self.path.parent.name

    @property
    def seed(self) -> int:
        """The seed (or the split of ``run_multiple_splits``)."""
        return int(self.path.name)

    @property
    def state(self) -> str:
        """``finished``, why it ended early, or how far an unfinished run has come."""
        if self.result is not None:
            return "finished"
        if self.failure:
            return self.failure if self.failure.startswith("pruned") else f"failed: {self.failure}"
        return f"unfinished, {len(self.rows)} of {self.config['optim']['max_epoch']} epochs"

    @cached_property
    def _config_text(self) -> str:
        folder = RunFolder(self.path)
        return folder.read(folder.config)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved config."""
        return stored_config(self._config_text)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """Every key of the resolved config, dotted; one that came later at its default."""
        return settings(self._config_text)

    @cached_property
    def identity(self) -> str | None:
        """The hash of the graphs that it was trained with; None where ``data.json`` does not say."""
        try:
            found = json.loads((self.path / "data.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return found.get("identity") if isinstance(found, dict) else None

    @property
    def encoder(self) -> str:
        """The encodings after the data encoder, ``none`` if there are none."""
        parts = self.config["dataset"]["node_encoder_name"].split("+")
        return "+".join(parts[1:]) or "none"

    def curve(self, column: str) -> tuple[list[int], list[float], list[float]]:
        """(epochs, hours since the start, values) of a column of ``metrics.csv``, where it is a number."""
        epochs, hours, values, seconds = [], [], [], 0.0
        for row in self.rows:
            seconds += float(row.get("seconds") or 0)
            value = float(row.get(column) or math.nan)
            if math.isfinite(value):
                epochs.append(int(row["epoch"]) + 1)
                hours.append(seconds / 3600)
                values.append(value)
        return epochs, hours, values


def read_run(path: Path) -> Run:
    """The run in a folder that has a ``config.yaml``."""
    folder, failure = RunFolder(path), path / FAILURE
    text = failure.read_text(errors="replace").strip() if failure.exists() else ""
    return Run(path, folder.read_result(), text, readable_metrics(folder))


def readable_metrics(folder: RunFolder) -> list[dict[str, str]]:
    """The rows of ``metrics.csv``; none, with a line, where it is damaged: only curves need them."""
    try:
        return folder.read_metrics()
    except (DamagedFileError, OSError) as error:
        log.warning("%s; its curves are left out", error)
        return []


def find_runs(out_dir: Path, names: Sequence[str] = ()) -> dict[str, list[Run]]:
    """The runs below ``out_dir`` by config name (all, or the named ones in that order), seeds in order."""
    if not out_dir.is_dir():
        raise UserError(f"{out_dir}: there is no such folder; give the folder that holds the results")
    folders = [out_dir / name for name in names] or sorted(p for p in out_dir.iterdir() if p.is_dir())
    found: dict[str, list[Run]] = {}
    for folder in folders:
        if names and not folder.is_dir():
            raise UserError(f"{out_dir}: holds no runs of {folder.name!r}; it has {_listing(out_dir)}")
        seeds = [p for p in folder.glob("*") if p.name.isdigit() and (p / "config.yaml").is_file()]
        if names and not seeds:
            log.warning("%s holds no runs", folder)
        if seeds:
            found[folder.name] = readable(sorted(seeds, key=lambda p: int(p.name)))
    found = {name: runs for name, runs in found.items() if runs}
    if not found:
        raise UserError(f"{out_dir}: holds no runs (<config>/<seed>/config.yaml){_meant(out_dir)}")
    return found


def _meant(folder: Path) -> str:
    """Which folder to give where this one is a run, or holds the runs of one config; '' otherwise."""
    path = folder.resolve()
    if (path / "config.yaml").is_file():
        return f"; it is one run, so give {path.parent.parent} {path.parent.name}"
    if any(file.parent.name.isdigit() for file in path.glob("*/config.yaml")):
        return f"; these are the runs of one config, so give {path.parent} {path.name}"
    return ""


def readable(folders: Sequence[Path]) -> list[Run]:
    """The runs, without those whose files are damaged, which are named."""
    runs = []
    for path in folders:
        try:
            run = read_run(path)
            run.settings  # noqa: B018 - reads the file
        except _UNREADABLE as error:
            log.warning("%s is left out: config.yaml is damaged (%s)", path, error)
        else:
            runs.append(run)
    return runs


def _listing(out_dir: Path) -> str:
    return ", ".join(sorted(p.name for p in out_dir.iterdir() if p.is_dir())) or "none"


def alike(runs: Sequence[Run]) -> list[Run]:
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


def other_data(runs: Sequence[Run]) -> str | None:
    """Which of some runs were trained with other graphs than most, in words; None if none was.

    Only runs are compared whose settings ask for the same graphs: with the same features and split, and with
    fingerprints among themselves.
    """
    kinds: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    for run in runs:
        if run.identity:
            first = run.settings["dataset.node_encoder_name"].partition("+")[0]
            asked = (run.settings.get(f"dataset.{key}") for key in ("features", "split_index"))
            kind = (*map(str, asked), str(first == "fingerprint"))
            kinds.setdefault(kind, {}).setdefault(run.identity, []).append(run)
    odd = []
    for found in kinds.values():
        most = max(found.values(), key=len)
        odd += [f"{run.name}, seed {run.seed}" for some in found.values() if some is not most for run in some]
    if not odd:
        return None
    return (
        f"trained with other data than the other runs (a changed file, or another version of what reads it): "
        f"{'; '.join(odd)}"
    )


def best_of_mean_curve(runs: Sequence[Run], column: str, larger_is_better: bool) -> dict[str, float] | None:
    """The epoch where the mean of a column over the runs is best, with mean and deviation there; None where
    the runs have no epoch in common."""
    curves = [dict(zip(*run.curve(column)[::2], strict=True)) for run in runs]
    common = set.intersection(*(set(curve) for curve in curves))
    if not common:
        return None
    sign = 1 if larger_is_better else -1
    epoch = max(sorted(common), key=lambda e: sign * statistics.fmean(curve[e] for curve in curves))
    mean, std, _ = mean_and_deviation([curve[epoch] for curve in curves])
    return {"epoch": epoch, "mean": mean, "std": std}


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float, int]:
    """Mean, standard deviation (n - 1; 0 for one value) and number of the values that are finite; NaN for
    none."""
    kept = [value for value in values if math.isfinite(value)]
    if not kept:
        return math.nan, math.nan, 0
    return statistics.fmean(kept), statistics.stdev(kept) if len(kept) > 1 else 0.0, len(kept)


def aggregate(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean and standard deviation (n - 1) over the runs of one config, at each run's best epoch.

    ``count`` says of how many runs: those whose value is finite. Where that is none, both are None.
    """
    columns = dict.fromkeys(c for r in results for c in r["best"] if c != "epoch")
    found = {c: mean_and_deviation([r["best"].get(c, math.nan) for r in results]) for c in columns}
    return {
        "config": results[0]["config"],
        "seeds": [r["seed"] for r in results],
        **({"folds": [r["fold"] for r in results]} if all("fold" in r for r in results) else {}),
        "metric": results[0]["metric"],
        "parameters": results[0]["parameters"],
        "splits": results[0]["splits"],
        "mean": {c: mean if count else None for c, (mean, _, count) in found.items()},
        "std": {c: std if count else None for c, (_, std, count) in found.items()},
        "count": {c: count for c, (_, _, count) in found.items()},
    }
