"""CSV files, plain or gzipped: columns by name, rows by line, and one-line errors for what can be wrong."""

from __future__ import annotations

import csv
import difflib
import gzip
import math
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphgps_pearl.data.base import BadRowError
from graphgps_pearl.data.molecules import shorten
from graphgps_pearl.errors import DataError

if TYPE_CHECKING:
    from _csv import Reader as _Reader  # the type of csv.reader has no public name

MISSING = frozenset({"", "na", "n/a", "nan", "none", "null"})


@dataclass
class CsvTable:
    """Chosen columns of a CSV file, every row kept, since row numbers may be all that a split file has."""

    file: Path
    rows: list[list[str]]
    lines: list[int]  # where each row ends in the file
    short: dict[int, str]  # rows that lack cells or have too many, and what to say of them

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, i: int) -> list[str]:
        """The chosen cells of row i, in the order asked for; BadRowError where their number is wrong."""
        if i in self.short:
            raise BadRowError(self.short[i])
        return self.rows[i]

    def where(self, i: int) -> str:
        """Row i as an editor finds it."""
        return f"line {self.lines[i]}"


def header_of(file: Path) -> list[str]:
    """The column names."""
    with _Opened(file) as reader:
        return _header(file, reader)


def read_columns(file: Path, columns: Mapping[str, str]) -> CsvTable:
    """Read columns, given as name -> the config key that names it (for the error where it is missing)."""
    table = CsvTable(file, [], [], {})
    with _Opened(file) as reader:
        header = _header(file, reader)
        places = [_place(file, header, column, key) for column, key in columns.items()]
        for row in reader:
            if not row:
                continue
            if len(row) <= max(places) or any(cell.strip() for cell in row[len(header) :]):
                table.short[len(table)] = f"has {len(row)} cells, the header has {len(header)}"
                row = []
            table.rows.append([row[place] for place in places] if row else [])
            table.lines.append(reader.line_num)
    if len(table) == len(table.short):
        first = f" ({table.where(0)} {table.short[0]})" if len(table) else ""
        raise DataError(f"{file}: has no usable rows{first}")
    return table


def number(cell: str, column: str, *, missing_allowed: bool = False) -> float:
    """A finite number; NaN for a missing label where that is allowed; BadRowError otherwise."""
    text = cell.strip()
    if text.lower() in MISSING:
        if missing_allowed:
            return math.nan
        raise BadRowError(f"column {column!r} has no value")
    try:
        value = float(text)
    except ValueError:
        raise BadRowError(f"column {column!r} has {shorten(text)}, which is not a number") from None
    if not math.isfinite(value):
        raise BadRowError(f"column {column!r} has {shorten(text)}, which is not finite")
    return value


class _Opened:
    """A csv reader as a context; everything that can go wrong while reading comes out as DataError."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> _Reader:
        # Cells of the public Peptides files hold whole distance matrices.
        self._limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
        try:
            zipped = self.file.suffix == ".gz"
            opener = gzip.open if zipped else open
            self._stream = opener(self.file, "rt", encoding="utf-8-sig", newline="")
        except OSError as error:
            csv.field_size_limit(self._limit)
            raise DataError(f"{self.file}: cannot be read ({error.strerror or error})") from error
        return csv.reader(self._stream)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._stream.close()
        csv.field_size_limit(self._limit)
        if isinstance(error, EOFError | gzip.BadGzipFile | zlib.error):
            raise DataError(f"{self.file}: is damaged or cut off ({error}); get it again") from error
        if isinstance(error, UnicodeDecodeError | csv.Error):
            raise DataError(f"{self.file}: is not a CSV file in UTF-8 ({error})") from error
        if isinstance(error, OSError):
            raise DataError(f"{self.file}: cannot be read ({error.strerror or error})") from error


def _header(file: Path, reader: _Reader) -> list[str]:
    header = next(reader, None)
    if not header:
        raise DataError(f"{file}: is empty; a CSV with a header line is wanted")
    return [name.strip() for name in header]


def _place(file: Path, header: Sequence[str], column: str, key: str) -> int:
    if header.count(column) > 1:
        raise DataError(f"{key}: {file} has {header.count(column)} columns {column!r}; rename the others")
    if column in header:
        return header.index(column)
    near = difflib.get_close_matches(column, header, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    shown = ", ".join(map(repr, header[:12])) + (", ..." if len(header) > 12 else "")
    raise DataError(f"{key}: {file} has no column {column!r}{hint}; its columns are {shown}")
