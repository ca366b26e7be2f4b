"""What ``evaluate-samples`` left in a run folder: one trained R-PEARL model at several numbers of samples."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "samples.csv"


@dataclass(frozen=True)
class Point:
    """One evaluation: M, the table of samples, the metric, and the encoding's error."""

    samples: int
    table: int
    metric: float
    error: float


def by_samples(points: Sequence[Point]) -> Iterator[tuple[int, list[Point]]]:
    """(M, its points), M rising."""
    for samples in sorted({p.samples for p in points}):
        yield samples, [p for p in points if p.samples == samples]


def read(path: Path) -> tuple[str, list[Point]] | None:
    """What ``evaluate-samples`` has left in a run folder, or None."""
    if not (path / FILE).is_file():
        return None
    with (path / FILE).open(newline="") as file:
        header, *rows = csv.reader(file)
    return header[2], [
        Point(int(m), int(table), float(value), float(error)) for m, table, value, error in rows
    ]
