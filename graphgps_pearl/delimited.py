"""Tables as text (CSV, TSV, semicolons; also gzipped): one reader for training and prediction, without torch.

The separator is the one with which the header has a wanted column, so that what a spreadsheet calls CSV is
read whatever it separates cells by.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TextIO

from graphgps_pearl.errors import DataError
from graphgps_pearl.unpacking import open_gzip

SEPARATORS = (",", ";", "\t")
_OTHERS = ("|", ":", " ")  # seen in files, and not read


class Rows:
    """The rows of a table after its header; ``line`` is where the last one ended in the file."""

    def __init__(self, lines: Iterable[str], separator: str, name: str) -> None:
        self.separator = separator
        # Strict: else a quote that is not closed swallows the rows up to the next one, without a word.
        self._reader = csv.reader(lines, delimiter=separator, strict=True)
        self._name = name
        header = next(iter(self), None)
        if header is None:
            raise DataError(f"{name}: is empty; a table with a header line is expected")
        self.header = [column.strip() for column in header]

    @property
    def line(self) -> int:
        """The number of the last line that was read, from 1."""
        return self._reader.line_num

    def __iter__(self) -> Iterator[list[str]]:
        return (row for row in self._rows() if len(row) > 1 or any(cell.strip() for cell in row))

    def _rows(self) -> Iterator[list[str]]:
        while True:
            begin = self.line + 1
            try:
                row = next(self._reader, None)
            except csv.Error as error:
                raise DataError(
                    f"{self._name}: line {begin}: no row of a table ({error}); a cell that begins with a "
                    "quote ends with one, and a quote within it is written twice"
                ) from error
            if row is None:
                return
            yield row


@contextmanager
def open_text(file: Path) -> Iterator[TextIO]:
    """A file's text, unpacked if it ends in ``.gz``; what can go wrong while it is read is a DataError."""
    try:
        packed = open_gzip(file) if file.suffix == ".gz" else file.open("rb")
        stream = io.TextIOWrapper(packed, encoding="utf-8-sig", newline="")
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror or error})") from error
    with stream, reading(str(file)):
        yield stream


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turns the errors of reading text, packed text and tables into one line about ``name``."""
    # Cells of the public Peptides files hold whole distance matrices.
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: is damaged or cut off ({error}); get it again") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{name}: is not a table in UTF-8 text ({error})") from error
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror or error})") from error
    finally:
        csv.field_size_limit(limit)


@contextmanager
def open_rows(file: Path, wanted: Collection[str]) -> Iterator[Rows]:
    """The rows of a file whose header has one of the ``wanted`` columns."""
    with open_text(file) as stream:
        head = header_lines(stream)
        separator = separator_of(head[-1], file.name, wanted) or default_separator(file.name)
        yield Rows(chain(head, stream), separator, str(file))


def header_lines(lines: Iterator[str]) -> list[str]:
    """The lines up to the first that is not blank, the header; that is "" where there is none."""
    head = []
    for line in lines:
        head.append(line)
        if line.strip():
            return head
    return [*head, ""]


def default_separator(name: str) -> str:
    """A tab for ``.tsv`` and ``.tab``, else a comma."""
    return "\t" if Path(name.removesuffix(".gz")).suffix.lower() in (".tsv", ".tab") else ","


def separator_of(header: str, name: str, wanted: Collection[str]) -> str | None:
    """The separator with which a header line has one of the wanted columns; None if there is none."""
    for separator in sorted(SEPARATORS, key=lambda s: s != default_separator(name)):
        columns = [cell.strip() for cell in next(csv.reader([header], delimiter=separator), [])]
        if any(find_column(columns, column) is not None for column in wanted):
            return separator
    return None


def find_column(header: Sequence[str], wanted: str) -> int | None:
    """Where a column is: by its name, else by its name in another case if one column has that."""
    if wanted in header:
        return header.index(wanted)
    alike = [i for i, column in enumerate(header) if column.lower() == wanted.lower()]
    return alike[0] if len(alike) == 1 else None


def missing_column(header: Sequence[str], wanted: str, name: str) -> str:
    """What to say of a column that a table does not have: the nearest, all of them, or its separator."""
    other = [separator for separator in _OTHERS if separator in header[0]] if len(header) == 1 else []
    if other:
        return (
            f"{name} has no column {wanted!r}: its header {header[0][:60]!r} is one cell; separate cells by "
            f"a comma, a semicolon or a tab, not by {other[0]!r}"
        )
    near = difflib.get_close_matches(wanted, header, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    shown = ", ".join(repr(column[:60]) for column in header[:12]) + (", ..." if len(header) > 12 else "")
    return f"{name} has no column {wanted!r}{hint}; its columns are {shown}"
