"""The times of a kernel encoding: ``range(1,21)`` written as text, parsed and never evaluated."""

from __future__ import annotations

import re
from typing import Any

MAX_TIMES = 1000
_RANGE = re.compile(r"\s*range\(\s*(-?\d{1,9})\s*,\s*(-?\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\)\s*")


def parse_range(text: str) -> range:
    """The range that ``range(a,b)`` or ``range(a,b,c)`` names; ValueError for any other text.

    >>> list(parse_range("range(1, 9, 2)"))
    [1, 3, 5, 7]
    """
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError("expected range(a,b) or range(a,b,c) with integers, and nothing else")
    start, stop, step = (int(part) if part is not None else 1 for part in match.groups())
    if step == 0:
        raise ValueError("expected range(a,b,c) with a step c that is not 0")
    times = range(start, stop, step)
    if not 1 <= len(times) <= MAX_TIMES or min(times) < 1:
        raise ValueError(f"expected a range of 1 to {MAX_TIMES} numbers, all >= 1")
    return times


def check_times(text: str) -> str | None:
    """What is wrong with a ``kernel.times_func``, or None; empty text leaves it to ``kernel.times``."""
    try:
        if text:
            parse_range(text)
    except ValueError as error:
        return str(error)
    return None


def kernel_times(kernel: Any) -> list[int]:
    """The times of a ``posenc_*.kernel`` group: those of ``times_func`` if it is set, else ``times``."""
    return list(parse_range(kernel.times_func)) if kernel.times_func else list(kernel.times)
