"""The points where an optional kernel of :mod:`graphgps_pearl.pearl.kernels` may replace plain lines.

Each has the plain lines in it, or returns None and the caller has them. These run where no kernel serves,
where kernels are switched off (:mod:`graphgps_pearl.switches`), and where there is no folder ``kernels``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.rows import Operators, PairRows, Rows
from graphgps_pearl.switches import kernels_enabled

if TYPE_CHECKING:
    from graphgps_pearl.pearl.norm import BatchNorm
    from graphgps_pearl.pearl.phi import Layer, Phi

MAX_PAIRS = 2**28  # n^2 summed over the graphs


def apply_layer(layer: Layer, x: Tensor, rows: Rows, residual: bool) -> Tensor:
    """``layer(x, rows)``, plus each row's own value where ``residual``."""
    kernels = _kernels()
    fast = None if kernels is None else kernels.apply_layer(layer, x, rows, residual)
    if fast is not None:
        return fast
    out = layer(x, rows)
    return out + rows.own(x) if residual else out


def apply_layers(
    layers: Sequence[Layer], x: Tensor, rows: Sequence[Rows], residual: Sequence[bool]
) -> Tensor:
    """:func:`apply_layer` for one layer after the other, or for all of them at once."""
    kernels = _kernels()
    fast = None if kernels is None else kernels.apply_layers(layers, x, rows, residual)
    if fast is not None:
        return fast
    for layer, layer_rows, skip in zip(layers, rows, residual, strict=True):
        x = apply_layer(layer, x, layer_rows, skip)
    return x


def weighted_norm(norm: BatchNorm, x: Tensor, rows: Any) -> Tensor | None:
    """``norm(x, rows)`` on a device, for rows with multiplicities; None where no kernel serves."""
    kernels = _kernels()
    return None if kernels is None else kernels.weighted_norm(norm, x, rows)


def pair_rows(
    phi: Phi, graphs: Graphs, gso: str, dtype: torch.dtype, quotient: bool | None, keep_pairs: bool
) -> Any:
    """The rows of B-PEARL: all pairs (v, m), or one row for each set of pairs that must be equal.

    ``quotient``: whether equal pairs are merged, None: where it is faster. ``keep_pairs``: the row of every
    pair will be asked for. It depends on the weights in nothing but their shapes.
    """
    if graphs.num_pairs > MAX_PAIRS:
        raise ValueError(
            f"B-PEARL on {graphs.num_pairs:.3g} pairs of nodes (n^2 for each graph, the largest has "
            f"{max(graphs.host_sizes)} nodes) is more than the {MAX_PAIRS:.3g} it is made for; "
            f"use smaller batches, or R-PEARL, whose cost is linear in the nodes"
        )
    kernels = _kernels()
    if kernels is None:
        return PairRows(Operators(graphs, gso, dtype))
    return kernels.pair_rows(phi, graphs, gso, dtype, quotient, keep_pairs)


def _kernels() -> ModuleType | None:
    return _import_kernels() if kernels_enabled() else None


@cache
def _import_kernels() -> ModuleType | None:
    name = "graphgps_pearl.pearl.kernels"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
