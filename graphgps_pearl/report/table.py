"""Tables for the terminal and for Markdown, from rows of strings."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns aligned for a terminal: the first to the left, numbers to the right.

    >>> print(text_table(["split", "mae"], [["val", "0.31"], ["test", "0.308"]]))
    split    mae
    val     0.31
    test   0.308
    """
    table = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in table
    )
    return "\n".join(line.rstrip() for line in lines)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same as GitHub-flavoured Markdown."""
    lines = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def number(value: float | None, digits: int = 4) -> str:
    """A value, or a dash where there is none."""
    return "-" if value is None or value != value else f"{value:.{digits}f}"
