r"""Optional fast paths. Each gives what the plain lines give, to 1e-9 in float64; the folder can be deleted.

- :mod:`.blocked` computes a layer of :math:`\Phi` in blocks of rows that stay in the processor's cache. It
  serves training with ReLU and batch norm, on a CPU, in float32 or float64 without autocast, in one process.
- :mod:`.folded` is a layer in evaluation without gradients, on a CPU: norms are folded into the linear maps.
  It serves any activation, with batch norm or without a norm.
- :mod:`.quotient` (with :mod:`.plan` and :mod:`.colours`) computes one row for all pairs (v, m) of B-PEARL
  that must be equal. It serves any device and norm where that is faster: where the signal does not reach all
  of the graph; no edge weights, and at most one generalised layer, which has to be the first.
- :mod:`.device_norm` is the norm of such rows in few operations, on other devices than a CPU.

docs/speed.md has what each buys.

This file decides which kernel serves; :mod:`graphgps_pearl.pearl.hooks` calls it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.kernels import device_norm, folded
from graphgps_pearl.pearl.kernels.blocked import Chain, chained
from graphgps_pearl.pearl.kernels.plan import build_plan, num_rounds
from graphgps_pearl.pearl.kernels.quotient import QuotientRows, Weighted
from graphgps_pearl.pearl.norm import BatchNorm, GraphNorm
from graphgps_pearl.pearl.phi import GINLayer, Layer, Phi, TapLayer
from graphgps_pearl.pearl.rows import Rows

_REFINING = 850  # multiplications that one round of refinement costs, for each pair within reach


def apply_layer(layer: Layer, x: Tensor, rows: Rows, residual: bool) -> Tensor | None:
    """``layer(x, rows)`` [+ x] in blocks of rows, or None where no kernel serves."""
    if not isinstance(layer, GINLayer | TapLayer) or type(layer) not in (GINLayer, TapLayer):
        return None
    if x.device.type != "cpu" or not x.numel() or torch.is_autocast_enabled("cpu"):
        return None
    if folded.serves(layer, x):
        return folded.evaluated(layer, x, rows, residual)
    if layer.act != "relu" or not layer.training:
        return None
    if isinstance(layer, GINLayer):
        if layer.end != "activation":
            return None
        chain = _chain(
            [linear.weight for linear in layer.linears if isinstance(linear, nn.Linear)], layer.norms, x
        )
        return None if chain is None else chained(x, chain, rows, layer.eps, residual)
    if layer.bias is not None or residual:
        return None
    chain = _chain([layer.weight.flatten(0, 1).t()], [layer.norm], x)
    return None if chain is None else chained(layer.taps(x, rows), chain, rows)


def _chain(weights: list[Tensor], norms: nn.ModuleList | list[nn.Module], x: Tensor) -> Chain | None:
    """The linear maps with their norms, or None where one of them is not for the kernel."""
    chain: Chain = []
    for weight, norm in zip(weights, norms, strict=True):
        if type(norm) is not BatchNorm or norm.reduce is not None or weight.dtype != x.dtype:
            return None
        chain.append((weight, norm))
    return chain if x.dtype in (torch.float32, torch.float64) else None


def pair_rows(
    phi: Phi, graphs: Graphs, gso: str, dtype: torch.dtype, quotient: bool | None, keep_pairs: bool
) -> QuotientRows | None:
    """One row for each set of pairs that must be equal, or None where all pairs are to be used."""
    depths = taps_and_layers(phi)
    if quotient is False or depths is None or graphs.edge_weight is not None:
        return None
    if quotient is None and not _merging_pays(phi, depths, graphs):
        return None
    # A norm over one graph at a time makes rows of different graphs different.
    separate = any(isinstance(module, GraphNorm) for module in phi.modules())
    plan = build_plan(graphs, *depths, gso, separate=separate, keep_pairs=keep_pairs)
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


def _merging_pays(phi: Phi, depths: tuple[int, int], graphs: Graphs) -> bool:
    """Whether merging saves more multiplications than refinement costs.

    After r rounds the signal has reached about 2 r nodes, and of the pairs within reach one in four, or
    fewer, equals another; that share of each layer is saved. Refinement costs about :data:`_REFINING`
    multiplications for each pair within reach and round.
    """
    rounds, pairs = num_rounds(*depths), graphs.num_pairs
    reached = 2 * graphs.num_nodes / max(pairs, 1)  # share of the pairs, in each round
    parts = [*phi.layers, *([phi.readout] if phi.readout is not None else [])]
    saved = 0.0
    for number, part in enumerate(parts):
        behind = min(number + max(depths[0] - 1, 0) + (depths[0] == 0), rounds)
        weights = sum(parameter.numel() for parameter in part.parameters())
        saved += weights * (1 - min(0.75, reached * behind))
    return saved > _REFINING * rounds * min(1.0, reached * rounds)
