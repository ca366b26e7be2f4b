"""Configs side by side: mean and deviation over seeds, and a paired test against a baseline."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from graphgps_pearl.errors import UserError
from graphgps_pearl.runs.folder import REPEAT_KEYS, first_change
from graphgps_pearl.runs.results import Run


@dataclass(frozen=True)
class Spread:
    """Mean, standard deviation (n - 1; 0 for one value) and number of values."""

    mean: float
    std: float
    count: int

    def __str__(self) -> str:
        if self.count == 0:
            return "-"
        return f"{self.mean:.4f} ± {self.std:.4f}" if self.count > 1 else f"{self.mean:.4f}"


def spread(values: Sequence[float]) -> Spread:
    """Of the values that are numbers."""
    kept = [v for v in values if not math.isnan(v)]
    if not kept:
        return Spread(math.nan, math.nan, 0)
    return Spread(statistics.fmean(kept), statistics.stdev(kept) if len(kept) > 1 else 0.0, len(kept))


@dataclass(frozen=True)
class Line:
    """One config of a comparison, at the best epoch of each of its finished runs."""

    name: str
    encoder: str
    metrics: dict[str, Spread]  # by split
    gap: Spread
    encoder_parameters: int
    network_parameters: int
    epochs: float
    seconds_per_epoch: float
    prepare_seconds: float
    memory_mb: float
    by_seed: dict[int, float] = field(repr=False)  # the compared metric
    p_value: float = math.nan


@dataclass(frozen=True)
class Comparison:
    """Lines of the finished configs, and what is to be said of the runs that are not in them."""

    metric: str
    larger_is_better: bool
    splits: tuple[str, ...]
    split: str  # whose metric is compared
    lines: list[Line]
    notes: list[str]
    baseline: str | None = None

    @property
    def best(self) -> str:
        """The config with the best mean on the compared split."""
        sign = -1 if self.larger_is_better else 1
        return min(self.lines, key=lambda line: sign * line.metrics[self.split].mean).name

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is not a number becomes null."""
        return _without_nan(asdict(self))


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _without_nan(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(v) for v in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def paired_p_value(first: Mapping[int, float], second: Mapping[int, float]) -> float:
    """Two-sided p of a paired t-test over the seeds both have; NaN for fewer than two or equal differences.

    Pairing by seed takes out what the seeds have in common (split, order of the data, start of the network).
    """
    seeds = sorted(first.keys() & second.keys())
    pairs = [(first[s], second[s]) for s in seeds]
    if len(pairs) < 2 or len({round(a - b, 12) for a, b in pairs}) == 1:
        return math.nan
    from scipy import stats

    return float(stats.ttest_rel(*zip(*pairs, strict=True)).pvalue)


def compare(
    runs: Mapping[str, Sequence[Run]], baseline: str | None = None, split: str | None = None
) -> Comparison:
    """Compare configs that were selected by the same metric.

    Args:
        runs: by config name, in the order of the lines.
        baseline: the config that the others are tested against.
        split: whose metric is compared; the last one (test) by default.
    """
    finished = {name: [run for run in some if run.result is not None] for name, some in runs.items()}
    results = [run.result for some in finished.values() for run in some if run.result is not None]
    notes = [
        f"{r.name}, seed {r.seed}: {r.state}" for some in runs.values() for r in some if r.result is None
    ]
    notes += [note for some in finished.values() for note in _unlike(some)]
    if not results:
        raise UserError("no run is finished yet; " + "; ".join(notes))
    if len({(r["metric"], tuple(r["splits"])) for r in results}) > 1:
        named = sorted({f"{r['config']} by {r['metric']}" for r in results})
        raise UserError(f"these configs are not selected by the same metric: {', '.join(named)}")
    if baseline is not None and not finished.get(baseline):
        raise UserError(f"the baseline {baseline!r} has no finished run; there are {', '.join(finished)}")
    splits = tuple(results[0]["splits"])
    chosen = split or splits[-1]
    if chosen not in splits:
        raise UserError(f"there is no split {chosen!r}; there are {', '.join(splits)}")
    metric = results[0]["metric"].removeprefix(f"{selection_split(results[0])}_")
    against = _by_seed(finished[baseline], f"{chosen}_{metric}") if baseline else {}
    lines = [
        _line(name, some, splits, metric, chosen, against if name != baseline else {})
        for name, some in finished.items()
        if some
    ]
    return Comparison(metric, results[0]["larger_is_better"], splits, chosen, lines, notes, baseline)


def _unlike(runs: Sequence[Run]) -> list[str]:
    """Which runs of a config differ from its first in more than the seed."""
    changes = [(run, first_change(run.settings, runs[0].settings, REPEAT_KEYS)) for run in runs[1:]]
    return [
        f"{run.name}, seed {run.seed}: has {changed} of seed {runs[0].seed}; both are in the mean"
        for run, changed in changes
        if changed
    ]


def selection_split(result: Mapping[str, Any]) -> str:
    """The split whose metric chose the best epoch."""
    return max((s for s in result["splits"] if result["metric"].startswith(f"{s}_")), key=len)


def _by_seed(runs: Sequence[Run], column: str) -> dict[int, float]:
    return {run.seed: run.result["best"].get(column, math.nan) for run in runs if run.result is not None}


def _line(
    name: str,
    runs: Sequence[Run],
    splits: Sequence[str],
    metric: str,
    chosen: str,
    against: Mapping[int, float],
) -> Line:
    results = [run.result for run in runs if run.result is not None]

    def mean(key: str) -> float:
        return statistics.fmean(r[key] for r in results)

    by_seed = _by_seed(runs, f"{chosen}_{metric}")
    train = _by_seed(runs, f"{splits[0]}_{metric}")
    sign = -1 if results[0]["larger_is_better"] else 1
    parameters = results[0]["parameters"]
    return Line(
        name=name,
        encoder=runs[0].encoder,
        metrics={s: spread(list(_by_seed(runs, f"{s}_{metric}").values())) for s in splits},
        gap=spread([sign * (by_seed[seed] - train[seed]) for seed in by_seed]),
        encoder_parameters=parameters["encoder"],
        network_parameters=sum(v for k, v in parameters.items() if k != "encoder"),
        epochs=mean("epochs"),
        seconds_per_epoch=mean("seconds_per_epoch"),
        prepare_seconds=max(r["prepare_seconds"] for r in results),
        memory_mb=mean("memory_mb"),
        by_seed=by_seed,
        p_value=paired_p_value(by_seed, against) if against else math.nan,
    )
