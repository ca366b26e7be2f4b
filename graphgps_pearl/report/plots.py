"""Plots of a comparison, readable in print: line styles and markers differ, not only colours."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from graphgps_pearl.report.comparison import Comparison
from graphgps_pearl.report.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers tell apart too.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_STYLES = ("-", "--", "-.", ":")
_MARKERS = "osD^vPX*"


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


def learning_curves(comparison: Comparison, runs: Mapping[str, Sequence[Run]], *, by_time: bool) -> Figure:
    """The compared metric of every config's first run on the validation split, by epoch or by hours."""
    split = comparison.splits[1] if len(comparison.splits) > 1 else comparison.splits[0]
    label = "hours of training" if by_time else "epoch"
    figure, axes = new_axes(label, f"{split} {comparison.metric}")
    for (name, some), look in zip(runs.items(), _looks(), strict=False):
        epochs, hours, values = some[0].curve(f"{split}_{comparison.metric}")
        step = max(1, len(values) // 12)
        axes.plot(hours if by_time else epochs, values, label=name, markevery=step, markersize=4, **look)
    if not comparison.larger_is_better:
        axes.set_yscale("log")
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
            x, value.mean, yerr=value.std, fmt=look["marker"], color=look["color"], label=line.name, capsize=3
        )
    axes.legend(fontsize=8)
    return figure


def all_plots(comparison: Comparison, runs: Mapping[str, Sequence[Run]]) -> dict[str, bytes]:
    """Every plot by file name, as PNG."""
    figures = {
        "curves-by-epoch": learning_curves(comparison, runs, by_time=False),
        "curves-by-time": learning_curves(comparison, runs, by_time=True),
        "metric-by-parameters": cost_plot(comparison, by_time=False),
        "metric-by-seconds": cost_plot(comparison, by_time=True),
    }
    return {f"{name}.png": _png(figure) for name, figure in figures.items()}


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=150, format="png")
    plt.close(figure)
    return buffer.getvalue()
