"""Files of molecules, as they come: every row is kept with all its columns, whatever its SMILES is worth.

``.smi`` has a SMILES (or CXSMILES) and perhaps a name on each line, ``.csv`` (or ``.tsv``) a header with a
SMILES column, its cells separated by commas, semicolons or tabs; both may be gzipped. ``-`` is standard
input, of either kind: its first line tells which.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TextIO

from graphgps_pearl.delimited import (
    Rows,
    default_separator,
    find_column,
    header_lines,
    missing_column,
    open_text,
    reading,
    separator_of,
)
from graphgps_pearl.errors import DataError

STANDARD_INPUT = "-"
_EXTENSION = re.compile(r"(\|[^|]*\|)(?:\s+(.*))?\s*$", re.DOTALL)  # of a CXSMILES, and the name after it


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
    name = "standard input" if path == STANDARD_INPUT else path
    with _standard_input() if path == STANDARD_INPUT else open_text(Path(path)) as stream:
        head = header_lines(stream)
        if not head[-1]:
            raise DataError(f"{name}: is empty")
        separator = _separator(path, head[-1], smiles_column)
        lines = chain(head, stream)
        table = (
            _read_smi(lines)
            if separator is None
            else _read_table(Rows(lines, separator, name), name, smiles_column)
        )
    if not len(table):
        raise DataError(f"{name}: has no molecules")
    return table


@contextmanager
def _standard_input() -> Iterator[TextIO]:
    with reading("standard input"):
        buffer = getattr(sys.stdin, "buffer", None)
        yield sys.stdin if buffer is None else io.TextIOWrapper(buffer, encoding="utf-8-sig")


def _separator(path: str, first: str, smiles_column: str | None) -> str | None:
    """What separates the cells of a table, or None for lines of SMILES."""
    suffix = Path(path.removesuffix(".gz")).suffix.lower()
    if suffix in (".smi", ".smiles"):
        return None
    separator = separator_of(first, path, [smiles_column or "smiles"])
    if suffix in (".csv", ".tsv", ".tab"):
        return separator or default_separator(path)
    # A line "SMILES" or "SMILES name" is the header that RDKit gives its .smi files.
    several = separator is not None and separator in first
    return separator if several or (smiles_column is not None and separator is not None) else None


def _read_smi(lines: Iterable[str]) -> MoleculeTable:
    table = MoleculeTable(["smiles", "name"])
    for number, line in enumerate(line for line in lines if line.strip()):
        smiles, *name = line.split(maxsplit=1)
        if number == 0 and smiles.lower() == "smiles":
            continue  # RDKit writes a header line
        if name and (extended := _EXTENSION.match(name[0])):
            smiles, name = f"{smiles} {extended[1]}", [extended[2]] if extended[2] else []
        table.rows.append([smiles, *(part.strip() for part in name)])
        table.smiles.append(smiles)
    if all(len(row) == 1 for row in table.rows):
        table.columns = ["smiles"]
    for row in table.rows:
        row += [""] * (len(table.columns) - len(row))
    return table


def _read_table(rows: Rows, name: str, smiles_column: str | None) -> MoleculeTable:
    columns, wanted = rows.header, smiles_column or "smiles"
    if columns.count(wanted) > 1:
        raise DataError(f"{name} has {columns.count(wanted)} columns {wanted!r}; rename all but one")
    index = find_column(columns, wanted)
    if index is None:
        raise DataError(f"{missing_column(columns, wanted, name)}; name it with --smiles-column")
    table = MoleculeTable(columns)
    for cells in rows:
        if len(cells) != len(columns):
            problem = f"the row has {len(cells)} cells, the header has {len(columns)}"
            table.problems[len(table)] = problem
        table.smiles.append(cells[index] if index < len(cells) else "")
        table.rows.append((cells + [""] * len(columns))[: len(columns)])
    return table
