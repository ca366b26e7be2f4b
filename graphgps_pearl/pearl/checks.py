"""Checks of arguments that raise a :class:`ValueError` in one line."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def check_name(what: str, name: str, choices: Iterable[str]) -> None:
    """``name`` has to be one of the choices.

    >>> check_name("gso", "laplace", ("adjacency", "laplacian"))
    Traceback (most recent call last):
    ...
    ValueError: unknown gso 'laplace'; choose from adjacency, laplacian
    """
    choices = list(choices)
    if name not in choices:
        raise ValueError(f"unknown {what} {name!r}; choose from {', '.join(choices)}")


def check_at_least(least: int, **values: int | None) -> None:
    """Every value that is not None has to be at least ``least``."""
    for name, value in values.items():
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, got {value}")


@torch.no_grad()
def check_range(taps: Tensor) -> None:
    """The squares of the taps must not overflow: a norm computes them."""
    limit = torch.finfo(torch.promote_types(taps.dtype, torch.float32)).max ** 0.4
    if taps.numel():
        least, most = torch.aminmax(taps)
        largest = float(torch.maximum(-least, most))
        if not largest < limit:
            raise ValueError(
                f"the taps reach {largest:.2g}, too large for {taps.dtype}: use fewer (num_taps), or an "
                "operator whose powers do not grow, such as gso random_walk or sym_adjacency"
            )
