"""Comparisons as one self-contained HTML page, and all files of a report."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from graphgps_pearl.escaping import printable
from graphgps_pearl.files import write_atomically
from graphgps_pearl.report.comparison import Comparison
from graphgps_pearl.report.facts import facts, published_rows, schedule_warning
from graphgps_pearl.report.groups import Group
from graphgps_pearl.report.molecules import drawings
from graphgps_pearl.report.plots import Plot, all_plots
from graphgps_pearl.report.rendering import (
    PUBLISHED,
    PUBLISHED_TITLE,
    as_csv,
    as_markdown,
    closing,
    columns,
    rows,
)

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 84rem; margin: 1.5rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; } h3 { font-size: 1.05rem; }
table { border-collapse: collapse; font-size: 12.5px; margin: 1rem 0; }
th, td { padding: .25rem .45rem; border-bottom: 1px solid #ddd; text-align: right; vertical-align: top; }
th { vertical-align: bottom; font-weight: 600; } td { font-variant-numeric: tabular-nums; }
th:first-child, td:first-child, th:nth-child(2), td:nth-child(2) { text-align: left; }
td:first-child { overflow-wrap: anywhere; min-width: 7.5rem; }
td small { color: #666; white-space: nowrap; display: block; }
.wide { overflow-x: auto; }
.facts th { text-align: left; font-weight: normal; color: #666; white-space: nowrap; vertical-align: top; }
.facts td { text-align: left; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; font-size: 13px; }
dt { font-weight: 600; } dd { margin: 0; }
.plots { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem; max-width: 72rem; }
@media (max-width: 700px) { .plots { grid-template-columns: 1fr; } }
img { width: 100%; } figure { margin: 0; } figcaption { text-align: center; font-size: 13px; color: #555; }
.drawn { max-width: 62rem; margin-bottom: 1rem; } .drawn figcaption { text-align: left; font-weight: 600; }
.best { font-weight: bold; } .tie { font-style: italic; } .note { color: #a00; margin: .2rem 0; }
.warning { background: #fff3cd; border: 1px solid #e0c060; padding: .4rem .8rem; }
.scale { display: inline-block; width: 10rem; height: .8rem; vertical-align: middle; border: 1px solid #ccc;
  background: linear-gradient(to right, rgb(59,115,217), rgb(247,247,247), rgb(222,71,56)); }
"""
_ON_MOLECULES = (
    "Atoms coloured by the first principal component of each trained encoding, after centring it within each "
    "molecule: the direction in which it tells the atoms of a molecule apart most. Each molecule has its own "
    "scale; which end is blue and which is red means nothing."
)
_BEST, _TIE = "\0best\0", "\0tie\0"  # marks in front of a cell; no text from elsewhere has a NUL


def as_html(
    comparisons: Sequence[Comparison],
    plots: Mapping[str, Sequence[Plot]],
    molecules: Mapping[str, Mapping[str, bytes]],
) -> str:
    """One page with everything in it, to send to a colleague; plots and molecules by a comparison's title."""
    first = comparisons[0]
    title = (
        f"{first.title}: {first.split} {first.metric} by encoder"
        if len(comparisons) == 1
        else f"{len(comparisons)} datasets compared"
    )
    sections = "".join(
        _section(c, plots[c.title], molecules.get(c.title, {}), heading=len(comparisons) > 1)
        for c in comparisons
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{_text(title)}</title>'
        f"<style>{_STYLE}</style><h1>{_text(title)}</h1>{sections}</html>\n"
    )


def _section(
    comparison: Comparison, plots: Sequence[Plot], molecules: Mapping[str, bytes], *, heading: bool
) -> str:
    shown = columns(comparison, lambda text, kind: (_BEST if kind == "best" else _TIE) + text)
    parts = [f"<h2>{_text(comparison.title)}</h2>"] if heading else []
    parts.append(_facts(comparison))
    parts.append(_table([c.title for c in shown], rows(comparison, shown), [c.meaning for c in shown]))
    verdict, *notes = closing(comparison)
    parts.append(f"<p>{_text(verdict)}</p>")
    parts += [f'<p class="note">{_text(note)}</p>' for note in notes]
    meanings = "".join(f"<dt>{_text(c.title)}</dt><dd>{_text(c.meaning)}</dd>" for c in shown)
    parts.append(f"<details open><summary>What the columns are</summary><dl>{meanings}</dl></details>")
    figures = "".join(_figure(plot.caption, plot.png) for plot in plots)
    parts.append(f'<h3>Curves and costs</h3><div class="plots">{figures}</div>')
    if molecules:
        drawn = "".join(_figure(name, png, "drawn", above=True) for name, png in molecules.items())
        legend = 'one end <span class="scale"></span> the other; white is the molecule\'s mean'
        parts.append(f"<h3>Encodings on molecules</h3><p>{_ON_MOLECULES}</p><p>{legend}</p>{drawn}")
    others = published_rows(comparison)
    if others:
        warning = schedule_warning(comparison)
        parts.append(f"<h3>{PUBLISHED_TITLE}</h3>")
        parts += [f'<p class="warning">{_text(warning)}</p>'] if warning else []
        parts.append(_table(PUBLISHED, others))
    return "".join(parts)


def _text(text: str) -> str:
    return html.escape(printable(text))


def _facts(comparison: Comparison) -> str:
    lines = (f"<tr><th>{_text(k)}</th><td>{_text(v)}</td></tr>" for k, v in facts(comparison))
    return f'<table class="facts">{"".join(lines)}</table>'


def _figure(caption: str, png: bytes, kind: str = "", *, above: bool = False) -> str:
    image = f'<img alt="{_text(caption)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
    below = f"<figcaption>{_text(caption)}</figcaption>"
    return f'<figure class="{kind}">{below + image if above else image + below}</figure>'


def _table(titles: Sequence[str], cells: Sequence[Sequence[str]], meanings: Sequence[str] = ()) -> str:
    head = "".join(
        f'<th title="{_text(meaning)}">{_text(title)}</th>'
        for title, meaning in zip(titles, meanings or [""] * len(titles), strict=True)
    )
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in cells)
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _cell(text: str) -> str:
    """A cell; the deviation of a mean stands below it, which makes the table narrow."""
    kind = next((k for k in (_BEST, _TIE) if text.startswith(k)), "")
    mean, plus_minus, deviation = text.removeprefix(kind).partition(" ± ")
    below = f"<small>± {_text(deviation)}</small>" if plus_minus else ""
    opened = f'<td class="{kind.strip(chr(0))}">' if kind else "<td>"
    return f"{opened}{_text(mean)}{' (tie)' if kind == _TIE else ''}{below}</td>"


def write_report(comparisons: Sequence[Comparison], folder: Path) -> Path:
    """Write ``report.{md,csv,json,html}`` and the plots into ``folder``; returns the page."""
    folder.mkdir(parents=True, exist_ok=True)
    plots = {c.title: all_plots(c) for c in comparisons}
    molecules = {c.title: drawings(c.runs) for c in comparisons}
    contents: dict[str, bytes | str] = {
        "report.md": "\n".join(as_markdown(c) for c in comparisons),
        "report.csv": as_csv(comparisons),
        "report.json": json.dumps({"groups": [c.to_json() for c in comparisons]}, indent=2) + "\n",
        "report.html": as_html(comparisons, plots, molecules),
    }
    slugs = [Group(c.title, {}).slug for c in comparisons]
    for i, comparison in enumerate(comparisons):
        number = f"-{i + 1}" if slugs.count(slugs[i]) > 1 else ""
        prefix = f"{slugs[i]}{number}-" if len(comparisons) > 1 else ""
        contents |= {f"{prefix}{plot.name}": plot.png for plot in plots[comparison.title]}
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return folder / "report.html"
