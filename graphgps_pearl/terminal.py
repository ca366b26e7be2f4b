"""Text for terminals: durations, lines cut to the width, and lines that are rewritten in place."""

from __future__ import annotations

import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

_FALLBACK_WIDTH = 80


def clock(seconds: float) -> str:
    """Seconds as people say them.

    >>> clock(7.4), clock(75), clock(3700), clock(200_000)
    ('7s', '1m 15s', '1h 01m', '2d 07h')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m {whole % 60:02d}s"
    if whole < 86400:
        return f"{whole // 3600}h {whole % 3600 // 60:02d}m"
    return f"{whole // 86400}d {whole % 86400 // 3600:02d}h"


def width() -> int:
    """Columns of the terminal (``COLUMNS``, else what it says); 80 where there is none."""
    return shutil.get_terminal_size((_FALLBACK_WIDTH, 24)).columns


def columns() -> int | None:
    """Columns that a table on standard output may have; None where it is no terminal."""
    return width() if sys.stdout.isatty() else None


def command_line() -> str:
    """How this program was started, without the folder it is in."""
    program = Path(sys.argv[0]).name
    started = ["python", "-m", "graphgps_pearl"] if program == "__main__.py" else [program]
    return shlex.join([*started, *sys.argv[1:]])


def fit(parts: Sequence[str], columns: int, separator: str = "  ") -> str:
    """The first parts that fit side by side; the first is cut if it has to be.

    >>> fit(["epoch 3/10", "val mae 0.8123", "best 0.7654"], 30)
    'epoch 3/10  val mae 0.8123'
    >>> fit(["a-very-long-name"], 10)
    'a-very-...'
    """
    line = parts[0]
    if len(line) > columns:
        return f"{line[: max(0, columns - 3)]}..."[:columns]
    for part in parts[1:]:
        if len(line) + len(separator) + len(part) > columns:
            break
        line += separator + part
    return line


def wrap(line: str, columns: int | None, indent: int = 2) -> str:
    """A line broken between words where it is longer than so many columns; None: as it is.

    What does not fit continues below, indented; a word (such as a path) is never broken.

    >>> print(wrap("largest graph: 34 nodes, 20 MB", 20))
    largest graph: 34
      nodes, 20 MB
    """
    if columns is None:
        return line
    lead = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(
        line.strip(),
        columns,
        initial_indent=lead,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


class LiveLines:
    """A few lines at the bottom of a terminal that are rewritten in place; elsewhere nothing is shown."""

    def __init__(self) -> None:
        self.stream = sys.stderr
        self.shown = 0

    @property
    def active(self) -> bool:
        """Whether the stream is a terminal."""
        return self.stream.isatty()

    def show(self, lines: Sequence[str]) -> None:
        """Replace the lines; each has to fit the width."""
        if self.active:
            self.clear()
            self.stream.write("\n".join(lines))
            self.stream.flush()
            self.shown = len(lines)

    def clear(self) -> None:
        """Remove them, so that other lines can be printed."""
        if self.shown:
            up = f"\x1b[{self.shown - 1}A" if self.shown > 1 else ""
            self.stream.write(f"\r{up}\x1b[J")
            self.stream.flush()
            self.shown = 0
