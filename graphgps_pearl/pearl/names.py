"""Names that stand for choices: activations, and the error for a name nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

Activation = Callable[[Tensor], Tensor]


def _cube(x: Tensor) -> Tensor:
    return x * x * x


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS: dict[str, Activation] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "elu": F.elu,
    "leaky_relu": F.leaky_relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "square": torch.square,
    "cube": _cube,
    "identity": _identity,
}


def check_name(what: str, name: str, choices: Iterable[str]) -> None:
    """Raise a :class:`ValueError` that lists the choices unless ``name`` is one of them.

    >>> check_name("gso", "laplace", ("adjacency", "laplacian"))
    Traceback (most recent call last):
    ...
    ValueError: unknown gso 'laplace'; choose from adjacency, laplacian
    """
    choices = list(choices)
    if name not in choices:
        raise ValueError(f"unknown {what} {name!r}; choose from {', '.join(choices)}")
