"""A comparison as text, Markdown, CSV, JSON, plots and one self-contained HTML page."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from graphgps_pearl.files import write_atomically
from graphgps_pearl.report.comparison import Comparison, Line
from graphgps_pearl.report.molecules import drawings
from graphgps_pearl.report.plots import all_plots
from graphgps_pearl.report.published import dataset_title, published
from graphgps_pearl.report.table import markdown_table, number, text_table
from graphgps_pearl.runs.results import Run


def header(comparison: Comparison) -> list[str]:
    """Column names of the comparison's table."""
    metrics = [f"{split} {comparison.metric}" for split in comparison.splits]
    p_value = [f"p vs {comparison.baseline}"] if comparison.baseline else []
    costs = ["encoder + network", "epochs", "s/epoch", "prepare s", "memory MB", "seeds"]
    return ["config", "encoder", *metrics, "gap", *p_value, *costs]


def cells(comparison: Comparison, line: Line, bold: str = "") -> list[str]:
    """One row; the best value of the compared split stands between ``bold`` marks."""
    metrics = [str(line.metrics[split]) for split in comparison.splits]
    if line.name == comparison.best:
        chosen = comparison.splits.index(comparison.split)
        metrics[chosen] = f"{bold}{metrics[chosen]}{bold}"
    p_value = [number(line.p_value, 3)] if comparison.baseline else []
    return [
        line.name,
        line.encoder,
        *metrics,
        str(line.gap),
        *p_value,
        f"{line.encoder_parameters:,} + {line.network_parameters:,}",
        f"{line.epochs:.0f}",
        f"{line.seconds_per_epoch:.1f}",
        f"{line.prepare_seconds:.1f}",
        f"{line.memory_mb:.0f}",
        str(len(line.by_seed)),
    ]


def as_text(comparison: Comparison) -> str:
    """The table for a terminal, with what is missing below it."""
    rows = [cells(comparison, line) for line in comparison.lines]
    return "\n".join([text_table(header(comparison), rows), "", *_closing(comparison)])


def _closing(comparison: Comparison) -> list[str]:
    best = f"best {comparison.split} {comparison.metric}: {comparison.best}"
    return [best, *(f"not in the table: {note}" for note in comparison.notes)]


def as_markdown(comparison: Comparison, runs: Mapping[str, Sequence[Run]]) -> str:
    """The table, what is missing, and the published figures in a block of their own."""
    rows = [cells(comparison, line, bold="**") for line in comparison.lines]
    text = markdown_table(header(comparison), rows) + "\n"
    text += "\n".join(f"- {line}" for line in _closing(comparison)) + "\n"
    others = published_rows(runs)
    if others:
        text += "\nPublished, trained by others under their own schedules:\n\n"
        text += markdown_table(["method", "setting", "split", "metric", "value", "source"], others)
    return text


def published_rows(runs: Mapping[str, Sequence[Run]]) -> list[list[str]]:
    """The published figures of the dataset that was compared on."""
    config = next(iter(runs.values()))[0].config
    return [
        [r["method"], r["setting"] or "-", r["split"], r["metric"], f"{r['mean']} ± {r['std']}", r["source"]]
        for r in published(dataset_title(config))
    ]


def as_csv(comparison: Comparison) -> str:
    """One line per config, numbers unrounded."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    columns = [f"{s}_{comparison.metric}_{part}" for s in comparison.splits for part in ("mean", "std")]
    costs = ["encoder_parameters", "network_parameters", "epochs", "seconds_per_epoch"]
    costs += ["prepare_seconds", "memory_mb"]
    writer.writerow(["config", "encoder", "seeds", *columns, "gap_mean", "gap_std", "p_value", *costs])
    for line in comparison.lines:
        values = [v for s in comparison.splits for v in (line.metrics[s].mean, line.metrics[s].std)]
        spent = [getattr(line, cost) for cost in costs]
        fixed = [line.name, line.encoder, len(line.by_seed)]
        writer.writerow([*fixed, *values, line.gap.mean, line.gap.std, line.p_value, *spent])
    return buffer.getvalue()


_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-size: 13px; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(28rem, 1fr)); gap: 1rem; }
img { width: 100%; } figure { margin: 1rem 0; } figcaption { text-align: center; }
.best { font-weight: bold; } .note { color: #a00; }
"""

_ON_MOLECULES = (
    "Atoms coloured by the first principal component of each trained encoding: the direction in which it "
    "tells atoms apart most. Blue is one end, red the other; an encoding's sign and scale mean nothing."
)


def as_html(
    comparison: Comparison,
    runs: Mapping[str, Sequence[Run]],
    plots: Mapping[str, bytes],
    molecules: Mapping[str, bytes],
) -> str:
    """One page with everything in it, to send to a colleague."""
    rows = [cells(comparison, line, bold="\0") for line in comparison.lines]
    pictures = "".join(_image(name, png) for name, png in plots.items())
    drawn = "".join(
        f"<figure>{_image(name, png)}<figcaption>{html.escape(name)}</figcaption></figure>"
        for name, png in molecules.items()
    )
    if drawn:
        drawn = f"<h2>Encodings on molecules</h2><p>{_ON_MOLECULES}</p>{drawn}"
    notes = "".join(f'<p class="note">not in the table: {html.escape(n)}</p>' for n in comparison.notes)
    others = published_rows(runs)
    block = ""
    if others:
        titles = ["method", "setting", "split", "metric", "value", "source"]
        block = "<h2>Published, trained by others under their own schedules</h2>" + _html_table(
            titles, others
        )
    title = f"{comparison.split} {comparison.metric} by encoder"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{html.escape(title)}</h1>{_html_table(header(comparison), rows)}{notes}"
        f'<div class="plots">{pictures}</div>{drawn}{block}</html>\n'
    )


def _image(name: str, png: bytes) -> str:
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _html_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def cell(text: str) -> str:
        kind = ' class="best"' if text.startswith("\0") else ""
        return f"<td{kind}>{html.escape(text.strip(chr(0)))}</td>"

    head = "".join(f"<th>{html.escape(t)}</th>" for t in titles)
    return (
        f"<table><tr>{head}</tr>{''.join('<tr>' + ''.join(map(cell, row)) + '</tr>' for row in rows)}</table>"
    )


def write_report(comparison: Comparison, runs: Mapping[str, Sequence[Run]], folder: Path) -> Path:
    """Write ``report.{md,csv,json,html}`` and the plots into ``folder``; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    plots = all_plots(comparison, runs)
    texts = {
        "report.md": as_markdown(comparison, runs),
        "report.csv": as_csv(comparison),
        "report.json": json.dumps(comparison.to_json(), indent=2) + "\n",
        "report.html": as_html(comparison, runs, plots, drawings(runs)),
    }
    contents = plots | {name: text.encode() for name, text in texts.items()}
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return folder / "report.html"
