"""Text from elsewhere, made safe for where it is shown: a terminal, Markdown, a CSV for spreadsheets.

Names of runs, targets, classes and columns come from files that somebody else may have written. A terminal
obeys escape sequences, Markdown obeys HTML, a spreadsheet computes cells that begin like a formula.
"""

from __future__ import annotations

import re

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_MARKDOWN = str.maketrans(
    {"\\": "\\\\", "|": "\\|", "<": "&lt;", ">": "&gt;", "&": "&amp;", "`": "\\`", "[": "\\["}
)


def printable(text: object) -> str:
    r"""One line without control characters: ``\n``, ESC and their like are written as Python escapes.

    >>> printable("a\x1b[31mb\nc")
    'a\\x1b[31mb\\nc'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))


def first_line(error: BaseException) -> str:
    """What an error says, short enough for a one-line message of ours."""
    return printable((str(error).splitlines() or [type(error).__name__])[0])[:160]


def markdown(text: object) -> str:
    """Text for a cell of a Markdown table or a line of a card: no column, tag, link or code begins in it.

    >>> markdown("a|b<script>")
    'a\\\\|b&lt;script&gt;'
    """
    return printable(text).translate(_MARKDOWN)


def code(text: object) -> str:
    """Text as a code span of Markdown, in a line or a table.

    >>> code("a`|b")
    "`a'\\\\|b`"
    """
    return "`" + printable(text).replace("`", "'").replace("|", "\\|") + "`"


def csv_cell(value: object) -> object:
    """A cell that a spreadsheet does not take for a formula: such text gets a leading apostrophe.

    Numbers stay as they are, also negative ones and those written as text.

    >>> csv_cell("=HYPERLINK(1)"), csv_cell("-1.5e-3"), csv_cell(-2)
    ("'=HYPERLINK(1)", '-1.5e-3', -2)
    """
    if not isinstance(value, str) or not value.startswith(_FORMULA) or is_number(value):
        return value
    return f"'{value}"


def is_number(text: str) -> bool:
    """Whether a cell is a plain decimal number, NaN or infinity."""
    return re.fullmatch(r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|nan|inf)", text) is not None
