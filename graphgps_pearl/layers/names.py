"""Looking a name up in a table, with an error that helps: what exists, and what was probably meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from torch import nn

from graphgps_pearl.errors import ConfigError

T = TypeVar("T")
Activation = str | Callable[[], nn.Module]


def unknown(key: str, name: str, known: Iterable[str]) -> ConfigError:
    """The error for a name that is not in ``known``; ``key`` is the config key that gave it."""
    names = sorted(known, key=str.lower)
    by_lower = {candidate.lower(): candidate for candidate in names}
    word = str(name).lower()
    nearest = get_close_matches(word, by_lower, n=1) or [long for long in by_lower if long.startswith(word)]
    hint = f"did you mean {by_lower[nearest[0]]!r}? " if nearest else ""
    return ConfigError(f"{key}: there is no {name!r}; {hint}Known: {', '.join(names)}")


def pick(table: Mapping[str, T], name: str, key: str) -> T:
    """``table[name]``, or the error of :func:`unknown`.

    >>> pick({"GINE": 1, "GCN": 2}, "GINE", "gt.layer_type")
    1
    >>> pick({"GINE": 1, "GCN": 2}, "Gine+", "KEY")
    Traceback (most recent call last):
    graphgps_pearl.errors.ConfigError: KEY: there is no 'Gine+'; did you mean 'GINE'? Known: GCN, GINE
    """
    if name not in table:
        raise unknown(key, name, table)
    return table[name]


def _leaky_relu(slope: float) -> Callable[[], nn.Module]:
    return lambda: nn.LeakyReLU(slope)


# GraphGym's and GraphGPS's names. None of them works in place: a layer's input is also its residual.
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "selu": nn.SELU,
    "prelu": nn.PReLU,
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "swish": nn.SiLU,
    "lrelu_01": _leaky_relu(0.1),
    "lrelu_025": _leaky_relu(0.25),
    "lrelu_03": _leaky_relu(0.3),
    "lrelu_05": _leaky_relu(0.5),
}


def activation(act: Activation) -> nn.Module:
    """A new activation module, from its name or from what makes one."""
    return pick(ACTIVATIONS, act, "gnn.act")() if isinstance(act, str) else act()
