"""One comparison of the benchmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

Step = Callable[[], object]


class Curve(NamedTuple):
    """Where a case belongs in a plot against the number of nodes: the panel, the two lines, the point."""

    family: str
    ours: str
    baseline: str
    nodes: int


@dataclass
class Case:
    """Two ways to do the same.

    Attributes:
        suite: it belongs to.
        name: says what is measured, and against what.
        ours: prepares, and returns what is timed.
        baseline: the same for the other side.
        memory: whether peak memory is worth a process of its own.
        once: too long to repeat: one pass without a warm-up (preparing has to warm up).
        wall: the wall clock, also with one thread: other processes do the work.
        scale: what the seconds are multiplied with, where the name speaks of more than is run.
        curve: where it belongs in a plot against the number of nodes, if it does.
    """

    suite: str
    name: str
    ours: Callable[[], Step]
    baseline: Callable[[], Step]
    memory: bool = True
    once: bool = False
    wall: bool = False
    scale: float = 1.0
    curve: Curve | None = None
