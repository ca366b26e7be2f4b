"""Tables for the terminal and for Markdown, from rows of strings; what is in them is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from graphgps_pearl.escaping import markdown, printable

_SHORTEST = 16  # columns that a first column is not cut below


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: int | None = None,
    priorities: Sequence[int] = (),
) -> str:
    """Columns aligned for a terminal: the first to the left, numbers to the right.

    With ``columns``, whole columns are left out until the lines are that short, those with the largest of
    ``priorities`` first. Before one of priority 1 goes, the first column is cut.

    >>> print(text_table(["split", "mae"], [["val", "0.31"], ["test", "0.308"]]))
    split    mae
    val     0.31
    test   0.308
    """
    table = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    shown = list(range(len(header)))
    ranks = priorities or range(len(header))
    while columns is not None and (excess := sum(widths[i] + 2 for i in shown) - 2 - columns) > 0:
        last = max(shown, key=lambda i: (ranks[i], i))
        if ranks[last] <= 1 and widths[0] - excess >= _SHORTEST:
            widths[0] -= excess
        elif len(shown) > 1:
            shown.remove(last)
        else:
            break
    first, *others = shown
    lines = (
        "  ".join(
            [_cut(row[first], widths[first]).ljust(widths[first]), *(row[i].rjust(widths[i]) for i in others)]
        )
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


def _cut(text: str, width: int) -> str:
    """The beginning and the end of a text that is too long: names of configs often begin alike."""
    if len(text) <= width:
        return text
    end = (width - 3) // 2
    return f"{text[: width - 3 - end]}...{text[len(text) - end :]}"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as GitHub-flavoured Markdown."""
    lines = [list(map(markdown, row)) for row in (header, *rows)]
    lines.insert(1, ["---"] + ["---:"] * (len(header) - 1))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float | None, digits: int = 4) -> str:
    """A value, or a dash where there is none."""
    return "-" if value is None or value != value else f"{value:.{digits}f}"
