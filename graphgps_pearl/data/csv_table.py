"""Columns of a CSV file by name, its rows by line, and one-line errors for what can be wrong with a cell."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphgps_pearl.data.base import BadRowError
from graphgps_pearl.data.molecules import shorten
from graphgps_pearl.delimited import find_column, missing_column, open_rows
from graphgps_pearl.errors import DataError

_YES = frozenset({"yes", "y", "true", "t", "active", "positive", "pos"})
_NO = frozenset({"no", "n", "false", "f", "inactive", "negative", "neg"})
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


def header_of(file: Path, wanted: Collection[str] = ()) -> list[str]:
    """The column names; the separator is the one with which a wanted column is among them."""
    with open_rows(file, wanted) as rows:
        return rows.header


def read_columns(file: Path, columns: Mapping[str, str]) -> CsvTable:
    """Read columns, given as name -> the config key that names it (for the error where it is missing)."""
    table = CsvTable(file, [], [], {})
    with open_rows(file, columns) as rows:
        indices = [_index(file, rows.header, column, key) for column, key in columns.items()]
        named = [i for i, name in enumerate(rows.header) if name]  # spreadsheets add columns without a name
        width = 1 + max([*named, *indices])
        for row in rows:
            # Of a row with too few cells it is not known which one is missing.
            if len(row) < width or any(cell.strip() for cell in row[width:]):
                table.short[len(table)] = f"has {len(row)} cells, the header has {width}"
                row = []
            table.rows.append([row[index] for index in indices] if row else [])
            table.lines.append(rows.line)
    if len(table) == len(table.short):
        first = f" ({table.where(0)} {table.short[0]})" if len(table) else ""
        raise DataError(f"{file}: has no usable rows{first}")
    return table


def _index(file: Path, header: Sequence[str], column: str, key: str) -> int:
    if header.count(column) > 1:
        raise DataError(f"{key}: {file} has {header.count(column)} columns {column!r}; rename the others")
    index = find_column(header, column)
    if index is None:
        raise DataError(f"{key}: {missing_column(header, column, str(file))}")
    return index


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
        hint = "; write decimals with a point" if text.count(",") == 1 and "." not in text else ""
        raise BadRowError(f"column {column!r} has {shorten(text)}, which is not a number{hint}") from None
    if not math.isfinite(value):
        raise BadRowError(f"column {column!r} has {shorten(text)}, which is not finite")
    return value


def yes_or_no(cell: str, column: str) -> float:
    """1 or 0 for a label of a binary target, NaN for a missing one; BadRowError for anything else."""
    text = cell.strip().lower()
    if text in MISSING:
        return math.nan
    for value, words in ((1.0, _YES), (0.0, _NO)):
        if text in words or (text.replace(".", "", 1).isdecimal() and float(text) == value):
            return value
    raise BadRowError(f"column {column!r} has {shorten(cell.strip())}, which is not 0 or 1, nor yes or no")
