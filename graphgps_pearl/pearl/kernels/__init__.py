r"""Optional fast paths. Each gives what the plain lines give, to 1e-9 in float64; the folder can be deleted.

- :mod:`.blocked` computes a layer of :math:`\Phi` in blocks of rows that stay in the processor's cache. It
  serves training with ReLU and batch norm, on a CPU, in float32 or float64 without autocast, in one process.
- :mod:`.native` is the same in compiled code, where the machine has a C++ compiler, in evaluation without
  gradients too.
- :mod:`.folded` is a layer in evaluation without gradients, on a CPU: norms are folded into the linear maps.
  It serves any activation, with batch norm or without a norm.
- :mod:`.quotient` (with :mod:`.plan` and :mod:`.colours`) computes one row for all pairs (v, m) of B-PEARL
  that must be equal, or leaves out those that the signal does not reach. It serves any device and norm where
  that is faster: where the signal does not reach all of the graph; no edge weights, and at most one
  generalised layer, which has to be the first.
- :mod:`.device_norm` is the norm of such rows in few operations, on other devices than a CPU.

docs/speed.md has what each buys.

This file decides which kernel serves; :mod:`graphgps_pearl.pearl.hooks` calls it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.kernels import blocked, device_norm, folded, native
from graphgps_pearl.pearl.kernels.blocked import Part
from graphgps_pearl.pearl.kernels.plan import build_plan, num_rounds
from graphgps_pearl.pearl.kernels.quotient import QuotientRows, Weighted
from graphgps_pearl.pearl.norm import BatchNorm, GraphNorm
from graphgps_pearl.pearl.phi import GINLayer, Layer, Phi, TapLayer
from graphgps_pearl.pearl.rows import Operators, PairRows, Rows

_REFINING = 850  # multiplications that one round of refinement costs, for each pair within reach
_MOST = 0.75  # if more of the pairs than this are within reach, all pairs are quicker than a list of them


def apply_layer(layer: Layer, x: Tensor, rows: Rows, residual: bool) -> Tensor | None:
    """``layer(x, rows)`` [+ x] in blocks of rows, or None where no kernel serves."""
    if not _on_cpu(x) or not _is_plain(layer):
        return None
    assert isinstance(layer, GINLayer | TapLayer)
    compiled = apply_layers([layer], x, [rows], [residual])
    if compiled is not None:
        return compiled
    if folded.serves(layer, x):
        return folded.evaluated(layer, x, rows, residual)
    part = _part(layer, rows, residual, x.dtype, training=True)
    if part is None:
        return None
    return blocked.run(layer.taps(x, rows) if isinstance(layer, TapLayer) else x, part)


def apply_layers(
    layers: Sequence[Layer], x: Tensor, rows: Sequence[Rows], residual: Sequence[bool]
) -> Tensor | None:
    """All layers in one call of compiled code, or None where it does not serve one of them."""
    if not _on_cpu(x) or any(isinstance(layer, TapLayer) for layer in layers[1:]):
        return None
    for training in (True,) if torch.is_grad_enabled() else (True, False):
        found = [
            _part(layer, layer_rows, skip, x.dtype, training)
            for layer, layer_rows, skip in zip(layers, rows, residual, strict=True)
        ]
        parts = [part for part in found if part is not None]
        if len(parts) == len(layers) and native.serves(x, parts):
            h0 = layers[0].taps(x, rows[0]) if isinstance(layers[0], TapLayer) else x
            return native.run(h0, parts) if training else native.evaluate(h0, parts)
    return None


def _on_cpu(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.numel() > 0 and not torch.is_autocast_enabled("cpu")


def _is_plain(layer: Layer) -> bool:
    """Whether a layer is ours, of torch's linear maps: others may do more than multiply by their weights."""
    if type(layer) is GINLayer:
        return all(type(linear) is nn.Linear for linear in layer.linears)
    return type(layer) is TapLayer


def _part(layer: Layer, rows: Rows, residual: bool, dtype: torch.dtype, training: bool) -> Part | None:
    """The layer with norms in training, or all of them in evaluation; None where it is not one of
    :mod:`.blocked`."""
    if dtype not in (torch.float32, torch.float64) or not _is_plain(layer):
        return None
    eps: Tensor | None = None
    if type(layer) is TapLayer and layer.act == "relu" and layer.bias is None and not residual:
        steps: list[tuple[Any, Any]] = [(layer.weight.flatten(0, 1).t(), layer.norm)]
    elif type(layer) is GINLayer and layer.act == "relu" and layer.end == "activation":
        steps, eps = (
            [(linear.weight, norm) for linear, norm in zip(layer.linears, layer.norms, strict=True)],
            layer.eps,
        )
    else:
        return None
    served = all(
        (type(norm) is BatchNorm or (type(norm) is GraphNorm and not training))
        and norm.training == training
        and not (training and norm.reduce is not None)
        and all(
            t.dtype == dtype for t in (weight, norm.weight, norm.bias, norm.running_mean, norm.running_var)
        )
        for weight, norm in steps
    )
    return Part(steps, rows, eps, residual) if served else None


def pair_rows(
    phi: Phi, graphs: Graphs, gso: str, dtype: torch.dtype, quotient: bool | None, keep_pairs: bool
) -> QuotientRows | PairRows:
    """Fewer rows than all pairs: one for each set of equal pairs, or none for pairs that no signal reaches.

    All pairs where that is quicker, or where the layers are others.
    """
    depths = taps_and_layers(phi)
    if quotient is False or depths is None or graphs.edge_weight is not None:
        return native.CompiledPairRows(Operators(graphs, gso, dtype))
    # A norm over one graph at a time makes rows of different graphs different.
    separate = any(isinstance(module, GraphNorm) for module in phi.modules())
    reach = _share_in_reach(depths, graphs)
    merged = quotient is True or _merging_pays(phi, depths, reach)
    if not merged and (separate or min(reach, 1) > _MOST):
        return native.CompiledPairRows(Operators(graphs, gso, dtype))
    plan = build_plan(graphs, *depths, gso, separate=separate, keep_pairs=keep_pairs, refined=merged)
    return QuotientRows(plan, gso, dtype, graphs)


def weighted_norm(norm: BatchNorm, x: Tensor, rows: Rows) -> Tensor | None:
    """``norm(x, rows)`` in few operations, or None where that kernel does not serve."""
    if not isinstance(rows, Weighted) or rows.share.dtype != x.dtype:
        return None
    return device_norm.weighted_norm(norm, x, rows.share, rows.total)


def taps_and_layers(phi: Phi) -> tuple[int, int] | None:
    """K and L where the layers are a generalised layer (or none) and then GIN layers; else None."""
    first, *rest = phi.layers
    num_taps = first.num_taps if type(first) is TapLayer else 0
    gin = rest if num_taps else [first, *rest]
    return (num_taps, len(gin)) if all(type(layer) is GINLayer for layer in gin) else None


def _share_in_reach(depths: tuple[int, int], graphs: Graphs) -> float:
    """Pairs that the signal reaches in all rounds, as a share of all; above 1 where it reaches all sooner.

    A round reaches about 2.8 nodes of a molecule.
    """
    return 2.8 * num_rounds(*depths) * graphs.num_nodes / max(graphs.num_pairs, 1)


_weights: WeakKeyDictionary[Phi, list[int]] = WeakKeyDictionary()  # numbers of each part


def _merging_pays(phi: Phi, depths: tuple[int, int], reach: float) -> bool:
    """Whether merging saves more multiplications than refinement costs, for each pair within reach.

    In the end one pair in four equals another. Before, the number of different rows grows with the rounds,
    until all pairs are reached. Refinement costs about :data:`_REFINING` multiplications for each pair and
    round.
    """
    rounds = num_rounds(*depths)
    full = max(rounds / max(reach, 1), 1)  # rounds until no more pairs are reached
    if phi not in _weights:
        parts = [*phi.layers, *([phi.readout] if phi.readout is not None else [])]
        _weights[phi] = [sum(parameter.numel() for parameter in part.parameters()) for part in parts]
    saved = 0.0
    for number, weights in enumerate(_weights[phi]):
        behind = min(number + max(depths[0] - 1, 0) + (depths[0] == 0), rounds)
        saved += weights * (1 - 0.75 * min(behind / full, 1))
    return saved > _REFINING * rounds
