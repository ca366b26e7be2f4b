"""Files of molecules, as they come: every row is kept with all its columns, whatever its SMILES is worth.

``.smi`` has a SMILES and perhaps a name on each line, ``.csv`` (or ``.tsv``) a header with a SMILES column;
both may be gzipped. ``-`` is standard input, of either kind: its first line tells which.
"""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from graphgps_pearl.errors import DataError

STANDARD_INPUT = "-"


@dataclass
class MoleculeTable:
    """Column names, rows of cells, the SMILES of each row; ``problems``: rows that do not fit the header."""

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    smiles: list[str] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)


def read_molecules(path: str, smiles_column: str | None = None) -> MoleculeTable:
    """All rows of a file; DataError if it cannot be read, has no SMILES column or no rows."""
    stream = _open(path)
    try:
        table = _read(stream, path, smiles_column)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{_shown(path)}: is not text in UTF-8 ({error})") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{_shown(path)}: is damaged or cut off ({error})") from error
    finally:
        if path != STANDARD_INPUT:
            stream.close()
    if not len(table):
        raise DataError(f"{_shown(path)}: has no molecules")
    return table


def _open(path: str) -> TextIO:
    if path == STANDARD_INPUT:
        return (
            io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig")
            if hasattr(sys.stdin, "buffer")
            else sys.stdin
        )
    file = Path(path)
    try:
        if file.suffix == ".gz":
            return gzip.open(file, "rt", encoding="utf-8-sig", newline="")
        return file.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error})") from error


def _read(stream: TextIO, path: str, smiles_column: str | None) -> MoleculeTable:
    lines: Iterator[str] = (line for line in stream if line.strip())
    first = next(lines, None)
    if first is None:
        raise DataError(f"{_shown(path)}: is empty")
    separator = _separator(path, first, smiles_column)
    lines = _chain(first, lines)
    return _read_smi(lines) if separator is None else _read_csv(lines, separator, path, smiles_column)


def _separator(path: str, first: str, smiles_column: str | None) -> str | None:
    """What separates the cells of a table, or None for lines of SMILES."""
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix in (".csv", ".tsv"):
        return "," if suffix == ".csv" else "\t"
    if suffix in (".smi", ".smiles"):
        return None
    for separator in (",", "\t"):
        cells = [cell.strip().strip('"') for cell in first.rstrip("\r\n").split(separator)]
        if smiles_column in cells or (len(cells) > 1 and "smiles" in map(str.lower, cells)):
            return separator
    return None


def _chain(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def _read_smi(lines: Iterator[str]) -> MoleculeTable:
    table = MoleculeTable(["smiles", "name"])
    for number, line in enumerate(lines):
        smiles, *name = line.split(maxsplit=1)
        if number == 0 and smiles.lower() == "smiles":
            continue  # RDKit writes a header line
        table.rows.append([smiles, *(part.strip() for part in name)])
        table.smiles.append(smiles)
    if all(len(row) == 1 for row in table.rows):
        table.columns = ["smiles"]
    for row in table.rows:
        row += [""] * (len(table.columns) - len(row))
    return table


def _read_csv(lines: Iterator[str], separator: str, path: str, smiles_column: str | None) -> MoleculeTable:
    limit = csv.field_size_limit(2**31 - 1)
    try:
        reader = csv.reader(lines, delimiter=separator)
        columns = [name.strip() for name in next(reader)]
        place = _smiles_place(columns, path, smiles_column)
        table = MoleculeTable(columns)
        for cells in reader:
            if len(cells) != len(columns):
                problem = f"the row has {len(cells)} cells, the header has {len(columns)}"
                table.problems[len(table)] = problem
            table.smiles.append(cells[place] if place < len(cells) else "")
            table.rows.append((cells + [""] * len(columns))[: len(columns)])
        return table
    finally:
        csv.field_size_limit(limit)


def _smiles_place(columns: list[str], path: str, wanted: str | None) -> int:
    if wanted is not None and wanted in columns:
        return columns.index(wanted)
    lowered = [name.lower() for name in columns]
    if wanted is None and "smiles" in lowered:
        return lowered.index("smiles")
    shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
    raise DataError(
        f"{_shown(path)}: has no column {wanted or 'smiles'!r}; name it with --smiles-column "
        f"(its columns are {shown})"
    )


def _shown(path: str) -> str:
    return "standard input" if path == STANDARD_INPUT else path
