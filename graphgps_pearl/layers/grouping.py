r"""Graphs of similar size in groups, each dense with padding of its own.

Dense attention over a batch pays for B·n² scores with n the largest graph; on batches of molecules of mixed
sizes most of them are padding. Sorted by size and cut into groups, the batch pays Σ_g B_g n_g². The cuts
minimise that sum plus a price for each group, exactly, by dynamic programming over the sorted sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

GROUP_COST = 8_000  # score entries that cost as much as one more group (measured on CPU, forward + backward)


@dataclass(frozen=True)
class Group:
    """Some graphs of a batch in dense form.

    Attributes:
        graphs: [B_g] which graphs.
        size: n_g, the largest of them.
        source: [B_g·n_g] the packed node of each dense row; padding repeats the graph's first node.
        rows: [N_g] the dense rows that are nodes, or None where all are.
        mask: [B_g, 1, 1, n_g], True at nodes, or None where nothing is padded.
    """

    graphs: Tensor
    size: int
    source: Tensor
    rows: Tensor | None
    mask: Tensor | None


@dataclass(frozen=True)
class Grouping:
    """All groups, and the place [N] of each packed node among the groups' nodes, one after the other."""

    groups: tuple[Group, ...]
    place: Tensor


def group_graphs(sizes: Tensor, cost: int = GROUP_COST) -> Grouping:
    """Group the graphs of a batch, whose packed nodes stand in order, by their ``sizes`` [B]."""
    device = sizes.device
    known = sizes.cpu()
    order = known.argsort(stable=True)
    order = order[known[order] > 0]
    first = known.cumsum(0) - known
    groups, nodes = [], [torch.empty(0, dtype=torch.long)]
    for start, stop in cuts(known[order].tolist(), cost):
        graphs = order[start:stop]
        n = int(known[graphs[-1]])
        column = torch.arange(n)
        inside = column < known[graphs].unsqueeze(1)  # [B_g, n]
        source = (first[graphs].unsqueeze(1) + torch.where(inside, column, 0)).flatten()
        rows = None if bool(inside.all()) else inside.flatten().nonzero().squeeze(1)
        nodes.append(source if rows is None else source[rows])
        mask = None if rows is None else inside[:, None, None, :].to(device)
        moved = None if rows is None else rows.to(device)
        groups.append(Group(graphs.to(device), n, source.to(device), moved, mask))
    packed = torch.cat(nodes)
    place = torch.empty_like(packed)
    place[packed] = torch.arange(packed.numel())
    return Grouping(tuple(groups), place.to(device))


def cuts(sizes: Sequence[int], cost: int) -> list[tuple[int, int]]:
    """Where to cut ascending sizes so that Σ (graphs x largest²) + cost x groups is least.

    >>> cuts([2, 2, 3, 50, 51], cost=200)
    [(0, 3), (3, 5)]
    >>> cuts([2, 2, 3, 50, 51], cost=100_000)
    [(0, 5)]
    """
    best = np.zeros(len(sizes) + 1)
    start = np.zeros(len(sizes) + 1, dtype=int)
    for stop in range(1, len(sizes) + 1):
        total = best[:stop] + (stop - np.arange(stop)) * float(sizes[stop - 1]) ** 2 + cost
        start[stop] = int(total.argmin())
        best[stop] = total[start[stop]]
    found, stop = [], len(sizes)
    while stop > 0:
        found.append((int(start[stop]), stop))
        stop = int(start[stop])
    return found[::-1]
