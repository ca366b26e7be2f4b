r"""Groups of graphs of similar size, each padded to the largest of the group.

Dense attention over a batch pays for B·n² scores with n the largest graph; on batches of molecules of mixed
sizes most of them are padding. Sorted by size and cut into groups, the batch pays Σ_g B_g n_g². The cuts
minimise that sum plus a price for each group, exactly, by dynamic programming over the sorted sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgps_pearl.contracts import Group

# Score entries that cost as much as one more group, forward and backward.
GROUP_COST = 8_000  # measured on a CPU
DEVICE_GROUP_COST = 250_000  # estimated for a GPU: the launches of a group take the time of so many entries


@dataclass(frozen=True)
class Grouping:
    """All groups of a batch.

    Attributes:
        groups: the groups; their dense rows, one group after the other, are numbered from 0.
        nodes: [D] gather index: the packed node of each dense row.
        dense_row: [N] gather index: the dense row of each packed node.
    """

    groups: tuple[Group, ...]
    nodes: Tensor
    dense_row: Tensor
    _cache: dict[Hashable, Tensor] = field(default_factory=dict, repr=False)

    @property
    def num_rows(self) -> int:
        """D, how many dense rows there are."""
        return self.nodes.numel()

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.dense_row.numel()

    def cached(self, key: Hashable, compute: Callable[[], Tensor]) -> Tensor:
        """``compute()`` at the first call with this key, and its result at every later one."""
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]


class DensePairs(Sequence[Tensor]):
    """Numbers of all dense pairs in one tensor [C, D], D = Σ_g B_g n_g²; its parts are [B_g, C, n_g, n_g]."""

    def __init__(self, whole: Tensor, groups: Sequence[Group]) -> None:
        self.whole, self._groups = whole, groups
        self._parts: list[Tensor] | None = None

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, number: Any) -> Any:
        if self._parts is None:
            sizes = [group.graphs.numel() * group.size**2 for group in self._groups]
            whole = [self.whole] if len(sizes) == 1 else self.whole.split(sizes, dim=1)
            parts = zip(whole, self._groups, strict=True)
            self._parts = [
                part.view(part.size(0), -1, group.size, group.size).transpose(0, 1) for part, group in parts
            ]
        return self._parts[number]


def group_cost(device: str) -> int:
    """What one more group costs on a kind of device."""
    return GROUP_COST if device == "cpu" else DEVICE_GROUP_COST


def group_graphs(sizes: Tensor, cost: int = GROUP_COST) -> Grouping:
    """Group the graphs of a batch, whose packed nodes are in order, by their ``sizes`` [B]."""
    device = sizes.device
    known = sizes.cpu()
    order = known.argsort(stable=True)
    order = order[known[order] > 0]
    first = known.cumsum(0) - known
    groups: list[Group] = []
    all_nodes, dense_row, taken = [known.new_empty(0)], torch.empty(int(known.sum()), dtype=torch.long), 0
    for start, stop in cuts(known[order].tolist(), cost):
        graphs = order[start:stop]
        n = int(known[graphs[-1]])
        column = torch.arange(n)
        inside = column < known[graphs].unsqueeze(1)  # [B_g, n]
        nodes = (first[graphs].unsqueeze(1) + torch.where(inside, column, 0)).flatten()
        rows = inside.flatten().nonzero().squeeze(1)
        dense_row[nodes[rows]] = taken + rows
        taken += nodes.numel()
        mask = None if rows.numel() == nodes.numel() else inside[:, None, None, :].to(device)
        groups.append(Group(graphs.to(device), n, nodes.to(device), mask))
        all_nodes.append(nodes)
    return Grouping(tuple(groups), torch.cat(all_nodes).to(device), dense_row.to(device))


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
