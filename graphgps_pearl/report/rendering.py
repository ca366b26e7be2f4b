"""A comparison as a table: its columns with their meanings, as text, Markdown and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from graphgps_pearl.escaping import csv_cell, markdown, printable
from graphgps_pearl.report.comparison import Comparison, Line
from graphgps_pearl.report.facts import facts, published_rows, schedule_warning
from graphgps_pearl.report.table import markdown_table, number, text_table
from graphgps_pearl.terminal import wrap


@dataclass(frozen=True)
class Column:
    """One column: title, meaning, its cell for a line; a larger ``priority`` is left out first."""

    title: str
    meaning: str
    cell: Callable[[Line], str]
    priority: int = 0


PUBLISHED = ("method", "setting", "split", "metric", "value", "source")
PUBLISHED_TITLE = "Published, trained by others under their own schedules"


_COSTS = (
    Column(
        "encoder + network",
        "trainable parameters of the encoders and of everything else",
        lambda line: f"{line.encoder_parameters:,} + {line.network_parameters:,}",
        7,
    ),
    Column("epochs", "epochs that were trained", lambda line: f"{line.epochs:.0f}", 9),
    Column(
        "s/epoch",
        "median seconds of an epoch, evaluation included",
        lambda line: f"{line.seconds_per_epoch:.1f}",
        4,
    ),
    Column(
        "prepare s",
        "seconds of reading and preparing the data, 0 if it came from the cache",
        lambda line: f"{line.prepare_seconds:.1f}",
        11,
    ),
    Column("memory MB", "peak memory of the process or the GPU", lambda line: f"{line.memory_mb:.0f}", 10),
    Column("seeds", "finished runs in the mean", lambda line: str(len(line.by_seed)), 2),
)


def columns(comparison: Comparison, mark: Callable[[str, str], str] | None = None) -> list[Column]:
    """The columns of a comparison; ``mark(text, kind)`` marks the values of the best (``best``) and of those
    that cannot be told from it (``tie``)."""
    c = comparison
    better = "higher" if c.larger_is_better else "lower"

    def value(split: str) -> Callable[[Line], str]:
        def cell(line: Line) -> str:
            text = str(line.metrics[split])
            if mark is None or split != c.split or line.name not in c.verdict.tied:
                return text
            return mark(text, "best" if c.verdict.best else "tie")

        return cell

    found = [
        Column("config", "name of the config, with its tag", lambda line: line.name),
        Column("encoder", "positional encodings after the data encoder", lambda line: line.encoder, 5),
    ]
    for split in c.splits:
        role = " (chose the epoch)" if split == c.selected else ""
        meaning = (
            f"{c.metric} of the {split} graphs at the epoch that {c.selected} chose, mean ± standard "
            f"deviation over seeds; {better} is better{role}"
        )
        important = {c.split: 1, c.selected: 2}.get(split, 6)
        found.append(Column(f"{split} {c.metric}", meaning, value(split), important))
    gap = f"{c.split} minus {c.splits[0]}" if not c.larger_is_better else f"{c.splits[0]} minus {c.split}"
    found.append(
        Column(
            "gap",
            f"{gap}: how much worse it is than in training, whose metric is that of the epoch's steps, with "
            "dropout",
            lambda line: str(line.gap),
            8,
        )
    )
    if c.baseline:
        meaning = f"p-value of a paired t-test against {c.baseline} over the seeds both have"
        # Short and important: it was asked for, and has to fit a narrow terminal.
        found.append(Column("p-value", meaning, lambda line: _p_value(line, c.baseline), 1))
    return [*found, *_COSTS]


def _p_value(line: Line, baseline: str | None) -> str:
    if line.name == baseline:
        return "baseline"
    return "< 0.001" if line.p_value < 0.001 else number(line.p_value, 3)


def rows(comparison: Comparison, shown: Sequence[Column]) -> list[list[str]]:
    """The cells of every line."""
    return [[column.cell(line) for column in shown] for line in comparison.lines]


def closing(comparison: Comparison) -> list[str]:
    """What is said below a table: the verdict, and what is not in it."""
    return [comparison.verdict.said, *comparison.notes]


def as_text(comparison: Comparison, width: int | None = None) -> str:
    """The table for a terminal of this width, with what is missing below it; ``~`` marks ties."""
    shown = columns(comparison, lambda text, kind: f"{'*' if kind == 'best' else '~'} {text}")
    titles, priorities = [c.title for c in shown], [c.priority for c in shown]
    table = text_table(titles, rows(comparison, shown), width, priorities)
    below = "\n".join(wrap(printable(line), width) for line in closing(comparison))
    return f"{printable(comparison.title)}\n\n{table}\n\n{below}"


def as_markdown(comparison: Comparison) -> str:
    """Facts, table, what its columns mean, what is missing, and the published figures in a block of their
    own."""
    shown = columns(comparison, lambda text, kind: f"**{text}**" if kind == "best" else f"{text} (tie)")
    text = f"## {markdown(comparison.title)}\n\n"
    text += markdown_table([c.title for c in shown], rows(comparison, shown)) + "\n"
    text += "".join(f"- {markdown(line)}\n" for line in closing(comparison))
    text += "\n" + "".join(f"- {markdown(k)}: {markdown(v)}\n" for k, v in facts(comparison))
    text += "\n" + "".join(f"- *{markdown(c.title)}*: {markdown(c.meaning)}\n" for c in shown)
    others = published_rows(comparison)
    if others:
        warning = schedule_warning(comparison)
        text += f"\n{PUBLISHED_TITLE}:\n\n" + (f"**{markdown(warning)}**\n\n" if warning else "")
        text += markdown_table(PUBLISHED, others)
    return text


def as_csv(comparisons: Sequence[Comparison]) -> str:
    """One line per config, numbers unrounded; columns that a group does not have are empty."""
    costs = ["encoder_parameters", "network_parameters", "epochs", "seconds_per_epoch"]
    costs += ["prepare_seconds", "memory_mb"]
    records = []
    for c in comparisons:
        for line in c.lines:
            record = {"dataset": c.title, "config": line.name, "encoder": line.encoder}
            record["seeds"] = str(len(line.by_seed))
            for split in c.splits:
                record[f"{split}_{c.metric}_mean"] = repr(line.metrics[split].mean)
                record[f"{split}_{c.metric}_std"] = repr(line.metrics[split].std)
            record |= {"gap_mean": repr(line.gap.mean), "gap_std": repr(line.gap.std)}
            record |= {"p_value": repr(line.p_value)} | {cost: str(getattr(line, cost)) for cost in costs}
            records.append(record)
    names = list(dict.fromkeys(name for record in records for name in record))
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(csv_cell, names))
    for record in records:
        writer.writerow(csv_cell(printable(record.get(name, ""))) for name in names)
    return buffer.getvalue()
