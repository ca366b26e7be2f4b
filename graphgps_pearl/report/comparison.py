"""Configs side by side: mean and deviation over seeds, and which differences are more than chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from graphgps_pearl.errors import UserError
from graphgps_pearl.report.groups import Group
from graphgps_pearl.runs.folder import REPEAT_KEYS, first_change
from graphgps_pearl.runs.results import Run, alike, mean_and_deviation, other_data

#: Differences with a larger p-value are ties.
LEVEL = 0.05


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
    """Of the values that are finite."""
    return Spread(*mean_and_deviation(values))


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
    by_seed: dict[int, float] = field(repr=False)  # the compared metric, where it is finite
    p_value: float = math.nan


@dataclass(frozen=True)
class Verdict:
    """Which config is best: one that validation prefers and that is better than each other by more than
    chance, or None; ``tied`` are those that cannot be told from the leader, itself included."""

    best: str | None
    tied: tuple[str, ...]
    said: str


@dataclass(frozen=True)
class Comparison:
    """Lines of the finished configs of one group, and what is to be said of the other runs."""

    title: str
    metric: str
    larger_is_better: bool
    splits: tuple[str, ...]
    split: str  # whose metric is compared
    selected: str  # the split that chose the epochs
    lines: list[Line]
    notes: list[str]
    verdict: Verdict
    runs: dict[str, list[Run]] = field(repr=False)  # those in the lines
    baseline: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is not a number becomes null."""
        names = [f.name for f in fields(self) if f.name not in ("runs", "lines", "verdict")]
        content = {name: getattr(self, name) for name in names}
        content |= {"lines": [asdict(line) for line in self.lines], "verdict": asdict(self.verdict)}
        return _without_nan(content)


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


def compare(group: Group, baseline: str | None = None, split: str | None = None) -> Comparison | None:
    """Compare the configs of a group; None if no run of it is finished.

    Args:
        group: its configs become lines, in their order.
        baseline: the config that the others are tested against, if the group has it.
        split: whose metric is compared, if the group has it; else the last one (test).
    """
    notes = [
        f"not in the table: {r.name}, seed {r.seed}: {r.state}"
        for some in group.runs.values()
        for r in some
        if r.result is None
    ]
    kept: dict[str, list[Run]] = {}
    for name, some in group.runs.items():
        finished = [run for run in some if run.result is not None]
        if finished:
            kept[name] = alike(finished)
            notes += _left_out(finished, kept[name])
    if not kept:
        return None
    result = next(iter(kept.values()))[0].result
    assert result is not None
    splits, selected = tuple(result["splits"]), selection_split(result)
    chosen: str = split if split is not None and split in splits else splits[-1]
    metric = selection_metric(result)
    baseline = baseline if baseline in kept else None
    against = _by_seed(kept[baseline], f"{chosen}_{metric}") if baseline else {}
    lines = [
        _line(name, some, splits, metric, chosen, against if name != baseline else {})
        for name, some in kept.items()
    ]
    for some in kept.values():
        notes += _without_number(some, f"{chosen}_{metric}")
    odd = other_data([run for some in kept.values() for run in some])
    notes += [*([odd] if odd else []), *_other_conditions(kept)]
    verdict = judge(lines, chosen, selected, metric, larger_is_better=result["larger_is_better"])
    return Comparison(
        title=group.title,
        metric=metric,
        larger_is_better=result["larger_is_better"],
        splits=splits,
        split=chosen,
        selected=selected,
        lines=lines,
        notes=notes,
        verdict=verdict,
        runs=kept,
        baseline=baseline,
    )


def compare_all(
    groups: Sequence[Group], baseline: str | None = None, split: str | None = None
) -> list[Comparison]:
    """The comparison of every group that has finished runs; UserError where ``baseline`` or ``split`` is in
    none of the groups, or nothing is finished."""
    found = [(group, compare(group, baseline, split)) for group in groups]
    comparisons = [comparison for _, comparison in found if comparison is not None]
    unfinished = [
        f"{run.name}, seed {run.seed}: {run.state}"
        for group, comparison in found
        if comparison is None
        for some in group.runs.values()
        for run in some
    ]
    if not comparisons:
        raise UserError("no run is finished yet; " + "; ".join(unfinished))
    comparisons[-1].notes.extend(f"in no table: {text}" for text in unfinished)
    names = [line.name for comparison in comparisons for line in comparison.lines]
    if baseline is not None and baseline not in names:
        if not any(baseline in group.runs for group in groups):
            raise UserError(f"there is no baseline {baseline!r}; there are {', '.join(names)}")
        comparisons[-1].notes.append(f"no p-values: the baseline {baseline} has no finished run")
    splits = dict.fromkeys(s for comparison in comparisons for s in comparison.splits)
    if split is not None and split not in splits:
        raise UserError(f"there is no split {split!r}; there are {', '.join(splits)}")
    return comparisons


def _left_out(runs: Sequence[Run], kept: Sequence[Run]) -> list[str]:
    """Which runs of a config have other settings than those that are in its mean."""
    return [
        f"not in the mean: {run.name}, seed {run.seed}: it has "
        f"{first_change(run.settings, kept[-1].settings, REPEAT_KEYS)}"
        for run in runs
        if run not in kept
    ]


def _other_conditions(runs: Mapping[str, Sequence[Run]]) -> list[str]:
    """In what configs differ that makes their figures less comparable: splits of the same seed, epochs."""
    notes = []
    indices: dict[int, dict[str, int]] = {}
    for name, some in runs.items():
        for run in some:
            indices.setdefault(run.seed, {})[name] = run.settings["dataset.split_index"]
    seed = next((seed for seed, found in indices.items() if len(set(found.values())) > 1), None)
    if seed is not None:
        listed = ", ".join(f"{name} {index}" for name, index in indices[seed].items())
        notes.append(f"not the same graphs: dataset.split_index of seed {seed} is {listed}")
    epochs = {
        name: some[0].settings["optim.max_epoch"]
        for name, some in runs.items()
        if not some[0].encoder.startswith("ECFP")
    }
    if len(set(epochs.values())) > 1:
        listed = ", ".join(f"{name} {count}" for name, count in epochs.items())
        notes.append(f"not the same schedule: optim.max_epoch is {listed}")
    return notes


def _without_number(runs: Sequence[Run], column: str) -> list[str]:
    """Which runs have no finite value of the compared metric, and thus are in no mean of it."""
    known = _by_seed(runs, column)
    return [
        f"not in the mean: {run.name}, seed {run.seed}: its {column.replace('_', ' ')} is not a number"
        for run in runs
        if run.seed not in known
    ]


def judge(
    lines: Sequence[Line], split: str, selected: str, metric: str, *, larger_is_better: bool
) -> Verdict:
    """Whether a config is best on a split, which ones cannot be told apart, and how that is known.

    Two configs differ if a paired t-test over their common seeds says so; without common seeds, if their
    standard deviations do not overlap; single runs are never told apart.
    """
    sign = -1 if larger_is_better else 1

    scored = [line for line in lines if line.metrics[split].count and line.metrics[selected].count]
    if len(scored) < 2:
        return Verdict(None, (), "one config: nothing to compare it with")
    leader = min(scored, key=lambda line: sign * line.metrics[split].mean)
    first = f"{'highest' if larger_is_better else 'lowest'} {split} {metric}: {leader.name}"
    preferred = min(scored, key=lambda line: sign * line.metrics[selected].mean)
    if preferred.metrics[selected].mean != leader.metrics[selected].mean:
        return Verdict(None, (), f"{first}, but {selected} prefers {preferred.name}: no best")
    others = [line for line in scored if line is not leader]
    tied = [line for line in others if not _differ(leader, line, split)]
    paired = all(len(_common(leader, line)) > 1 for line in others)
    how = "paired by seed" if paired else "by standard deviations where two have no two seeds in common"
    if tied:
        said = f"{first}, not told apart from {', '.join(line.name for line in tied)}"
        names = (leader.name, *(line.name for line in tied))
        single = [line.name for line in (leader, *tied) if line.metrics[split].count == 1]
        if single:
            said += f" (one seed of {', '.join(single)}; --seeds 4 would tell more)"
            return Verdict(None, () if leader.name in single else names, said)
        return Verdict(None, names, f"{said} (p >= {LEVEL}, {how})")
    said = f"best {split} {metric}: {leader.name} (p < {LEVEL} against each other config, {how})"
    return Verdict(leader.name, (leader.name,), said)


def _common(first: Line, second: Line) -> list[int]:
    return sorted(first.by_seed.keys() & second.by_seed.keys())


def _differ(first: Line, second: Line, split: str) -> bool:
    common = _common(first, second)
    if len(common) > 1:
        p = paired_p_value(first.by_seed, second.by_seed)
        if math.isnan(p):  # the same difference with every seed
            return first.by_seed[common[0]] != second.by_seed[common[0]]
        return p < LEVEL
    a, b = first.metrics[split], second.metrics[split]
    return min(a.count, b.count) > 1 and abs(a.mean - b.mean) > a.std + b.std


def selection_split(result: Mapping[str, Any]) -> str:
    """The split whose metric chose the best epoch."""
    return max((s for s in result["splits"] if result["metric"].startswith(f"{s}_")), key=len)


def selection_metric(result: Mapping[str, Any]) -> str:
    """The metric that chose the best epoch, without its split; its name may have a ``_`` itself."""
    return str(result["metric"].removeprefix(f"{selection_split(result)}_"))


def _by_seed(runs: Sequence[Run], column: str) -> dict[int, float]:
    """A column at the best epoch, of the runs where it is finite."""
    found = {run.seed: run.result["best"].get(column, math.nan) for run in runs if run.result is not None}
    return {seed: value for seed, value in found.items() if math.isfinite(value)}


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
        gap=spread([sign * (by_seed[seed] - train[seed]) for seed in by_seed.keys() & train.keys()]),
        encoder_parameters=parameters["encoder"],
        network_parameters=sum(v for k, v in parameters.items() if k != "encoder"),
        epochs=mean("epochs"),
        seconds_per_epoch=mean("seconds_per_epoch"),
        prepare_seconds=max(r["prepare_seconds"] for r in results),
        memory_mb=mean("memory_mb"),
        by_seed=by_seed,
        p_value=paired_p_value(by_seed, against) if against else math.nan,
    )
