"""What ``evaluate-samples`` left in a run folder: one trained R-PEARL model at several numbers of samples."""

from __future__ import annotations

import csv
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

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
    """What ``evaluate-samples`` has left in a run folder, or None (with a line where it is damaged)."""
    if not (path / FILE).is_file():
        return None
    try:
        with (path / FILE).open(newline="") as file:
            header, *rows = csv.reader(file)
        points = [Point(int(m), int(table), float(value), float(error)) for m, table, value, error in rows]
        if not points:
            raise ValueError("it has no rows")
        return header[2], points
    except (ValueError, IndexError, csv.Error) as error:
        log.warning("%s is left out: it is damaged (%s)", path / FILE, error)
        return None
