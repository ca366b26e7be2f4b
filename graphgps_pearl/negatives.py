"""Pairs of nodes without an edge, drawn for those that have one."""

from __future__ import annotations

import torch
from torch import Tensor

_PER_EDGE, _TRIES = 2, 10


def with_negatives(
    edges: Tensor, index: Tensor, sizes: Tensor, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Edges (i, j) [2, P] and, for each, two pairs (i, k) of its graph that are no edges; with labels [L].

    ``index`` [N] is every node's graph, ``sizes`` [B] the graphs' numbers of nodes. No pair is drawn twice;
    where a node has edges to nearly all others, fewer are found. As in GraphGPS k may be i.
    """
    nodes = len(index)
    heads = edges[0].repeat_interleave(_PER_EDGE)
    count = sizes[index[heads]]
    first = (sizes.cumsum(0) - sizes)[index[heads]]
    taken = edges[0] * nodes + edges[1]
    drawn = torch.full_like(heads, -1)
    for _ in range(_TRIES):
        missing = (drawn < 0).nonzero().flatten()
        if not len(missing):
            break
        chance = torch.rand(len(missing), generator=generator, device=edges.device)
        other = first[missing] + (chance * count[missing]).long().clamp(max=count[missing] - 1)
        key = heads[missing] * nodes + other
        held = torch.cat((taken, (heads * nodes + drawn)[drawn >= 0]))
        new = ~torch.isin(key, held) & _first_of_its_kind(key)
        drawn[missing[new]] = other[new]
    found = drawn >= 0
    negatives = torch.stack((heads[found], drawn[found]))
    label = torch.zeros(edges.size(1) + negatives.size(1), device=edges.device)
    label[: edges.size(1)] = 1.0
    return torch.cat((edges, negatives), dim=1), label


def _first_of_its_kind(keys: Tensor) -> Tensor:
    """Whether no equal key stands before each."""
    order = keys.argsort(stable=True)
    ordered = keys[order]
    new = torch.ones_like(ordered, dtype=torch.bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return torch.zeros_like(new).index_put((order,), new)
