"""Results on disk: a CSV of the input's columns with predictions, an npz of encodings. Whole or absent."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

import numpy as np

from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.escaping import csv_cell, printable
from graphgps_pearl.files import write_atomically

if TYPE_CHECKING:
    from graphgps_pearl.inference.model import Encodings

ERROR_COLUMN = "error"


class PredictionWriter:
    """Writes the CSV row by row, to standard output or to a temporary file that takes its name at the end.

    Args:
        path: the file; None for standard output.
        source: the file the molecules come from, which is not to be replaced.
    """

    def __init__(self, path: str | None, source: str) -> None:
        self.path = Path(path) if path else None
        if (
            self.path is not None
            and Path(source).exists()
            and self.path.exists()
            and self.path.samefile(source)
        ):
            raise UserError(f"{path}: is the file with the molecules; write the predictions to another one")
        if self.path is not None and self.path.is_dir():
            raise UserError(f"{path}: is a folder; name a file to write the predictions to")
        if self.path is not None and self.path.exists() and not self.path.is_file():
            raise UserError(f"{path}: is no file (a device or a pipe); leave -o out to use standard output")
        self._temporary = self.path and self.path.with_name(f".{self.path.name}.{os.getpid()}")
        self._written = False
        self.error_column = ERROR_COLUMN  # its name in the header, which the input may have already

    def __enter__(self) -> Self:
        self._stream: TextIO = sys.stdout
        if self._temporary is not None:
            try:
                self._stream = self._temporary.open("w", newline="", encoding="utf-8")
            except OSError as error:
                raise DataError(f"{self.path}: cannot be written ({error.strerror or error})") from error
        self._writer = csv.writer(self._stream, lineterminator="\n")
        # Columns of the input are kept as they are in a file; a terminal would obey what is in them.
        self._shown: Callable[[object], object] = printable if self._stream.isatty() else lambda cell: cell
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._temporary is None or self.path is None:
            self._stream.flush()
            return
        complete = kind is None or (issubclass(kind, UserError) and getattr(error, "code", 2) == 1)
        try:
            self._stream.close()
            if complete and self._written:
                self._temporary.replace(self.path)
        finally:
            self._temporary.unlink(missing_ok=True)

    def header(self, kept: Sequence[str], predicted: Sequence[str], *, with_spread: bool) -> None:
        """Input columns, predictions, spreads over sample tables, reasons."""
        spreads = [f"spread_{name.split('_', 1)[1]}" for name in predicted] if with_spread else []
        ours = _fresh([*predicted, *spreads, ERROR_COLUMN], kept)
        self.error_column = ours[-1]
        self._writer.writerow(map(self._shown, [*kept, *map(csv_cell, ours)]))
        self._written = True

    def row(self, kept: Sequence[str], values: Any, spread: Any, error: str) -> None:
        """One molecule; empty predictions where there is an error."""
        numbers = [*values, *(spread if spread is not None else ())]
        cells = ["" if error or not np.isfinite(number) else f"{number:.6g}" for number in numbers]
        self._writer.writerow(map(self._shown, [*kept, *cells, csv_cell(error)]))


def _fresh(names: Iterable[str], taken: Sequence[str]) -> list[str]:
    """Names that the input does not have: it may be an earlier output."""
    fresh = []
    for name in names:
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}_{number}", number + 1
        fresh.append(candidate)
    return fresh


def check_ending(path: str | None, ending: str) -> None:
    """UserError if a file to write has another ending than its kind."""
    if path and not path.endswith(ending):
        raise UserError(f"{path}: expected a name that ends in {ending}")


def write_encodings(encodings: Encodings, path: Path) -> None:
    """``smiles`` [n], ``starts`` [n + 1], and for every encoding its rows [atoms, dim_pe].

    Atoms of molecule i are rows ``starts[i]`` to ``starts[i + 1]``, in the order in which its SMILES names
    them; a molecule that could not be read has none.
    """
    first = next(iter(encodings.arrays.values()))
    starts = np.cumsum([0, *(len(part) for part in first)])
    # Molecules without rows do not know the width of an encoding without dim_pe.
    arrays: dict[str, Any] = {
        name: np.concatenate([part for part in parts if len(part)] or parts)
        for name, parts in encodings.arrays.items()
    }
    arrays |= {"smiles": np.array(encodings.smiles), "starts": starts}
    try:
        write_atomically(path, lambda file: np.savez_compressed(file, **arrays))
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({error.strerror or error})") from error
