r"""Graphs of similar size in groups, each dense with padding of its own.

Dense attention over a batch pays for B·n² scores with n the largest graph; on batches of molecules of mixed
sizes most of them are padding. Sorted by size and cut into groups, the batch pays Σ_g B_g n_g². The cuts
minimise that sum plus a price for each group, exactly, by dynamic programming over the sorted sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
        mask: [B_g, 1, 1, n_g], True at nodes, or None where nothing is padded.
    """

    graphs: Tensor
    size: int
    source: Tensor
    mask: Tensor | None

    def padding(self, dtype: torch.dtype) -> Tensor | None:
        """What the logits get of the mask: [B_g, 1, 1, n_g], zero at nodes and -inf at padding, or None."""
        if self.mask is None:
            return None
        zeros = torch.zeros(self.mask.shape, dtype=dtype, device=self.mask.device)
        return zeros.masked_fill(~self.mask, -math.inf)


@dataclass(frozen=True)
class Grouping:
    """All groups.

    Attributes:
        groups: one after the other, their dense rows are the rows of all.
        place: [N] the row of each packed node.
        num_rows: how many rows there are.
    """

    groups: tuple[Group, ...]
    place: Tensor
    num_rows: int
    _kept: dict[tuple[int, int, bool | None], Tensor] = field(default_factory=dict, repr=False)

    def to_heads(self, count: int, heads: int, fill: bool) -> Tensor:
        """Where dense rows come from, cut into pieces: for each group in the order (part, graph, head, node).

        ``count`` parts of ``heads`` heads each are ``count * heads`` pieces of every packed row. Padding
        repeats the graph's first node, or with ``fill`` is the piece behind all others.
        """

        def make() -> Tensor:
            pieces, found = count * heads, []
            for group in self.groups:
                node = group.source.view(1, -1, 1, group.size)
                index = node * pieces + self._piece(count, heads)
                if fill and group.mask is not None:
                    index = index.masked_fill(
                        ~group.mask.view(1, -1, 1, group.size), pieces * self.place.numel()
                    )
                found.append(index.flatten())
            return torch.cat(found)

        return self._once((count, heads, fill), make)

    def from_heads(self, count: int, heads: int) -> Tensor:
        """Where the pieces of packed rows are found among those of the dense rows: the way back."""

        def make() -> Tensor:
            there = self.to_heads(count, heads, True)
            back = torch.empty(count * heads * self.place.numel() + 1, dtype=torch.long, device=there.device)
            back[there] = torch.arange(there.numel(), device=there.device)
            return back[:-1]

        return self._once((count, heads, None), make)

    def _piece(self, count: int, heads: int) -> Tensor:
        """[count, 1, H, 1] the number of a part's head within a row."""
        return torch.arange(count * heads, device=self.place.device).view(count, 1, heads, 1)

    def _once(self, key: tuple[int, int, bool | None], make: Callable[[], Tensor]) -> Tensor:
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]


def group_graphs(sizes: Tensor, cost: int = GROUP_COST) -> Grouping:
    """Group the graphs of a batch, whose packed nodes stand in order, by their ``sizes`` [B]."""
    device = sizes.device
    known = sizes.cpu()
    order = known.argsort(stable=True)
    order = order[known[order] > 0]
    first = known.cumsum(0) - known
    groups, place, taken = [], torch.empty(int(known.sum()), dtype=torch.long), 0
    for start, stop in cuts(known[order].tolist(), cost):
        graphs = order[start:stop]
        n = int(known[graphs[-1]])
        column = torch.arange(n)
        inside = column < known[graphs].unsqueeze(1)  # [B_g, n]
        source = (first[graphs].unsqueeze(1) + torch.where(inside, column, 0)).flatten()
        rows = inside.flatten().nonzero().squeeze(1)
        place[source[rows]] = taken + rows
        taken += source.numel()
        mask = None if rows.numel() == source.numel() else inside[:, None, None, :].to(device)
        groups.append(Group(graphs.to(device), n, source.to(device), mask))
    return Grouping(tuple(groups), place.to(device), taken)


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
