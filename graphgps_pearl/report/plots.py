"""Plots of a comparison, readable in print: line styles and markers differ, not only colours."""

from __future__ import annotations

import io
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, takewhile
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import LogLocator, MaxNLocator

from graphgps_pearl.escaping import printable
from graphgps_pearl.report.comparison import Comparison, spread
from graphgps_pearl.report.samples import Point, by_samples
from graphgps_pearl.report.samples import read as read_samples
from graphgps_pearl.runs.folder import HARMLESS_KEYS, REPEAT_KEYS
from graphgps_pearl.runs.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers tell apart too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX*"
#: The encoder itself is no axis to plot along, nor is what names runs.
_ENCODER = "dataset.node_encoder_name"


def _looks() -> Iterator[dict[str, Any]]:
    return (
        {"color": colour, "linestyle": style, "marker": marker}
        for colour, style, marker in zip(cycle(_COLOURS), cycle(_STYLES), cycle(_MARKERS), strict=False)
    )


def new_axes(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    """A figure with one labelled pair of axes."""
    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(alpha=0.3)
    return figure, axes


@dataclass(frozen=True)
class Plot:
    """A PNG with its name and what it shows."""

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True)
class Curve:
    """A metric over the epochs of several seeds: mean and standard deviation where all of them have a
    value."""

    epochs: list[int]
    seconds: list[float]
    means: list[float]
    stds: list[float]


def mean_curve(runs: Sequence[Run], column: str) -> Curve:
    """The curve of a config's runs, without those that have none."""
    found = (run.curve(column) for run in runs)
    curves = [dict(zip(e, zip(h, v, strict=True), strict=True)) for e, h, v in found if e]
    common = sorted(set.intersection(*(set(curve) for curve in curves))) if curves else []
    spreads = [spread([curve[epoch][1] for curve in curves]) for epoch in common]
    return Curve(
        common,
        [3600 * statistics.fmean(curve[epoch][0] for curve in curves) for epoch in common],
        [s.mean for s in spreads],
        [s.std for s in spreads],
    )


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit in which so many seconds are read best, and its length in seconds."""
    return next(
        u for u in (("hours", 3600), ("minutes", 60), ("seconds", 1)) if seconds >= 2 * u[1] or u[1] == 1
    )


def learning_curves(comparison: Comparison, *, by_time: bool) -> Figure:
    """The compared metric on the split that chose the epochs, by epoch or by time: mean over seeds, with a
    band of a standard deviation."""
    column = f"{comparison.selected}_{comparison.metric}"
    curves = {name: mean_curve(some, column) for name, some in comparison.runs.items()}
    unit, length = time_unit(max((c.seconds[-1] for c in curves.values() if c.seconds), default=0))
    label = f"{unit} of training" if by_time else "epoch"
    figure, axes = new_axes(label, column.replace("_", " "))
    values: list[float] = []
    for (name, curve), look in zip(curves.items(), _looks(), strict=False):
        x = [s / length for s in curve.seconds] if by_time else curve.epochs
        step = max(1, len(x) // 12)
        axes.plot(x, curve.means, label=printable(name), markevery=step, markersize=4, **look)
        low = [m - s for m, s in zip(curve.means, curve.stds, strict=True)]
        high = [m + s for m, s in zip(curve.means, curve.stds, strict=True)]
        if any(curve.stds):
            axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
        values += low + high
    if not by_time:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if not comparison.larger_is_better and values and 0 < 5 * min(values) < max(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))  # more labels would overlap
        axes.yaxis.set_minor_formatter("{x:g}")
    axes.legend(fontsize=8)
    return figure


def cost_plot(comparison: Comparison, *, by_time: bool) -> Figure:
    """The compared metric against parameters or seconds per epoch, one marker per config."""
    label = "seconds per epoch" if by_time else "trainable parameters"
    figure, axes = new_axes(label, f"{comparison.split} {comparison.metric}")
    for line, look in zip(comparison.lines, _looks(), strict=False):
        x = line.seconds_per_epoch if by_time else line.encoder_parameters + line.network_parameters
        value = line.metrics[comparison.split]
        axes.errorbar(
            x,
            value.mean,
            yerr=value.std,
            fmt=look["marker"],
            color=look["color"],
            label=printable(line.name),
            capsize=3,
        )
    axes.legend(fontsize=8)
    return figure


def differing_keys(runs: Mapping[str, Sequence[Run]]) -> dict[str, list[list[str]]]:
    """Keys in which configs differ and in nothing else, each with the groups of configs that do."""
    settings = {
        name: {k: repr(v) for k, v in some[0].settings.items() if k not in REPEAT_KEYS | HARMLESS_KEYS}
        for name, some in runs.items()
    }
    keys = {k for one in settings.values() for k in one}
    varied = sorted(k for k in keys if len({one.get(k) for one in settings.values()}) > 1)
    found: dict[str, list[list[str]]] = {}
    for key in (key for key in varied if key != _ENCODER):
        groups: dict[tuple[str | None, ...], list[str]] = {}
        for name, one in settings.items():
            groups.setdefault(tuple(one.get(k) for k in varied if k != key), []).append(name)
        several = [group for group in groups.values() if len({settings[name].get(key) for name in group}) > 1]
        if several:
            found[key] = several
    return found


def ablation_plots(comparison: Comparison) -> dict[str, Figure]:
    """The compared metric against every key in which alone some configs differ, a curve for each group."""
    lines = {line.name: line.metrics[comparison.split] for line in comparison.lines}
    figures = {}
    runs = comparison.runs
    for key, groups in differing_keys(runs).items():
        figure, axes = new_axes(key, f"{comparison.split} {comparison.metric}")
        for group, look in zip(groups, _looks(), strict=False):
            points = _on_axis({name: runs[name][0].settings.get(key) for name in group})
            values = [lines[name] for _, name in points]
            axes.errorbar(
                [x for x, _ in points],
                [v.mean for v in values],
                yerr=[v.std for v in values],
                label=printable(_common_name(group, key)),
                capsize=3,
                **look,
            )
        axes.legend(fontsize=8)
        figures[f"ablation-{key}"] = figure
    return figures


def _on_axis(values: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """(place on the axis, name), in order: numbers as they are, else all of them as words."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values.values())
    return sorted((value if numbers else str(value), name) for name, value in values.items())


def _common_name(names: Sequence[str], key: str) -> str:
    """What the names of several configs begin with, without the key that tells them apart."""
    columns = zip(*(name.split("-") for name in names), strict=False)
    common = "-".join(words[0] for words in takewhile(lambda words: len(set(words)) == 1, columns))
    return common.removesuffix(key.rpartition(".")[2]).rstrip("-") or names[0]


def samples_plots(evaluated: Mapping[str, tuple[str, Sequence[Point]]]) -> dict[str, Figure]:
    """The metric and the encoding's error against the number of samples M, a curve for each run."""
    columns = list(dict.fromkeys(column for column, _ in evaluated.values()))
    metric, metric_axes = new_axes("samples M", ", ".join(columns).replace("_", " "))
    error, error_axes = new_axes("samples M", "relative error of the encoding")
    for (name, (column, points)), look in zip(evaluated.items(), _looks(), strict=False):
        label = printable(name if len(columns) == 1 else f"{name}, {column}")
        grouped = list(by_samples(points))
        x = [m for m, _ in grouped]
        for axes, values in (
            (metric_axes, [[p.metric for p in some] for _, some in grouped]),
            (error_axes, [[p.error for p in some] for _, some in grouped]),
        ):
            spreads = [spread(v) for v in values]
            axes.errorbar(
                x, [s.mean for s in spreads], yerr=[s.std for s in spreads], label=label, capsize=3, **look
            )
    start = max(
        spread([p.error for p in points if p.samples == min(q.samples for q in points)]).mean
        for _, points in evaluated.values()
    )
    ends = sorted({p.samples for _, points in evaluated.values() for p in points})
    slope = [start * (m / ends[0]) ** -0.5 for m in ends]
    error_axes.plot(ends, slope, color="gray", linewidth=0.8, label=r"$M^{-1/2}$")
    error_axes.set_yscale("log")
    for axes in (metric_axes, error_axes):
        axes.set_xscale("log")
        axes.legend(fontsize=8)
    return {"metric-by-samples": metric, "encoding-error-by-samples": error}


def all_plots(comparison: Comparison) -> list[Plot]:
    """Every plot, as PNG."""
    over = "mean over seeds, band: one standard deviation"
    bars = "bars: one standard deviation over seeds"
    what, selected = f"{comparison.split} {comparison.metric}", f"{comparison.selected} {comparison.metric}"
    figures = {
        "curves-by-epoch": (learning_curves(comparison, by_time=False), f"{selected} by epoch; {over}"),
        "curves-by-time": (learning_curves(comparison, by_time=True), f"{selected} by training time; {over}"),
        "metric-by-parameters": (cost_plot(comparison, by_time=False), f"{what} against parameters; {bars}"),
        "metric-by-seconds": (
            cost_plot(comparison, by_time=True),
            f"{what} against the time of an epoch; {bars}",
        ),
    }
    for name, figure in ablation_plots(comparison).items():
        key = name.removeprefix("ablation-")
        figures[name] = (figure, f"{what} of configs that differ in {key} alone; {bars}")
    evaluated = {name: read_samples(some[0].path) for name, some in comparison.runs.items()}
    present = {name: found for name, found in evaluated.items() if found is not None}
    if present:
        captions = (
            "metric of trained R-PEARL models against the number of samples M",
            "relative error of their encodings against M",
        )
        for (name, figure), caption in zip(samples_plots(present).items(), captions, strict=True):
            figures[name] = (figure, caption)
    return [Plot(f"{name}.png", png(figure), caption) for name, (figure, caption) in figures.items()]


def png(figure: Figure) -> bytes:
    """A figure as a PNG file's content; the figure is closed."""
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, format="png")
    plt.close(figure)
    return buffer.getvalue()
