"""The nodes of one large graph as small graphs: each node, or each of some parts, with its neighbourhood.

A split of a node task on one graph then is a sequence of graphs like any other: batches, several processes,
resuming and attention within a graph work as they do for molecules. ``n_id`` has the nodes' numbers in the
whole graph, by which R-PEARL draws their samples. Single nodes with their neighbourhood are the scheme of
ShaDow (https://arxiv.org/abs/2201.07858), parts without one that of Cluster-GCN
(https://arxiv.org/abs/1905.07953).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor
from torch_geometric.data import Data


class Neighbourhoods(Sequence[Data]):
    """For each of some groups of nodes, the subgraph of the nodes within ``hops`` incoming edges of it.

    With ``neighbours`` > 0 at most so many are followed from a node at each hop, drawn at random but always
    the same ones for one group and seed. All edges among the nodes found are kept. The group's nodes come
    first; those of them that are among ``labelled`` have a target, no other node has.

    Args:
        graph: the whole graph; attributes of nodes and edges go along.
        groups: node numbers, [R] or one tensor for each group.
        hops: how far.
        neighbours: most neighbours followed from a node; 0 = all.
        seed: of the draws.
        labelled: nodes whose targets are known; all unless given.
    """

    def __init__(
        self,
        graph: Data,
        groups: Tensor | Sequence[Tensor],
        hops: int,
        neighbours: int = 0,
        seed: int = 0,
        labelled: Tensor | None = None,
    ) -> None:
        self.graph = graph
        self.groups: Sequence[NDArray[np.int64]] | NDArray[np.int64] = (
            groups.view(-1, 1).numpy() if isinstance(groups, Tensor) else [group.numpy() for group in groups]
        )
        self.hops, self.neighbours, self.seed = hops, neighbours, seed
        total = int(graph.num_nodes or 0)
        self._known = torch.ones(total, dtype=torch.bool)
        if labelled is not None:
            self._known[:] = False
            self._known[labelled] = True
        source, target = graph.edge_index.numpy()
        self._order = np.argsort(target, kind="stable")  # edges by target
        self._sources = source[self._order]
        counts = np.bincount(target, minlength=total)
        self._starts = np.concatenate((np.zeros(1, np.int64), counts.cumsum()))

    @classmethod
    def parts(
        cls, graph: Data, count: int, labelled: Tensor, hops: int, neighbours: int = 0, seed: int = 0
    ) -> Self:
        """All nodes in so many parts whose sizes differ by one at most, neighbours near each other (reverse
        Cuthill-McKee); those without a labelled node are left out."""
        edges = graph.edge_index.numpy()
        shape = (int(graph.num_nodes or 0),) * 2
        order = reverse_cuthill_mckee(csr_array((np.ones(edges.shape[1], np.int8), edges), shape))
        parts = torch.from_numpy(order.astype(np.int64)).tensor_split(max(min(count, len(order)), 1))
        kept = [part for part in parts if torch.isin(part, labelled).any()]
        return cls(graph, kept, hops, neighbours, seed, labelled)

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Iterator[Data]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, i: int) -> Data: ...
    @overload
    def __getitem__(self, i: slice) -> list[Data]: ...
    def __getitem__(self, i: int | slice) -> Data | list[Data]:
        if isinstance(i, slice):
            return [self[j] for j in range(len(self))[i]]
        if not -len(self) <= i < len(self):
            raise IndexError(f"subgraph {i} of {len(self)}")
        group = self.groups[i]
        return self._cut(self._nodes(group), len(group))

    def num_nodes(self) -> Tensor:
        """The most nodes that each graph can have [len(self)], without making it."""
        total = int(self.graph.num_nodes or 0)
        all_near = self.hops and not self.neighbours
        most = total if all_near else sum(self.neighbours**hop for hop in range(self.hops + 1))
        return torch.tensor([min(most * len(group), total) for group in self.groups])

    def _nodes(self, group: NDArray[np.int64]) -> NDArray[np.int64]:
        """The nodes of a neighbourhood, the group first."""
        rng = np.random.default_rng([self.seed, int(group[0])])
        found = frontier = group
        for _ in range(self.hops):
            edges, owner = self._incoming(frontier)
            if self.neighbours:
                shuffled = rng.permutation(len(edges))
                edges, owner = edges[shuffled], owner[shuffled]
                by_owner = np.argsort(owner, kind="stable")
                first = np.searchsorted(owner[by_owner], owner[by_owner])
                edges = edges[by_owner][np.arange(len(edges)) - first < self.neighbours]
            frontier = np.setdiff1d(self._sources[edges], found)
            found = np.concatenate((found, frontier))
        return found

    def _incoming(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Positions of the incoming edges of some nodes in the order by target, and which of the nodes each
        belongs to."""
        count = self._starts[nodes + 1] - self._starts[nodes]
        owner = np.repeat(np.arange(len(nodes)), count)
        within = np.arange(len(owner)) - np.repeat(count.cumsum() - count, count)
        return self._starts[nodes][owner] + within, owner

    def _cut(self, nodes: NDArray[np.int64], own: int) -> Data:
        """The subgraph of some nodes, of which the first ``own`` may have targets."""
        edges, target = self._incoming(nodes)
        ordered = np.argsort(nodes)
        place = np.searchsorted(nodes, self._sources[edges], sorter=ordered).clip(max=len(nodes) - 1)
        source = ordered[place]
        inside = nodes[source] == self._sources[edges]
        chosen, kept = torch.from_numpy(nodes), torch.from_numpy(self._order[edges[inside]])
        cut = Data(n_id=chosen, edge_index=torch.from_numpy(np.stack((source[inside], target[inside]))))
        for key, value in self.graph:
            if key != "edge_index" and isinstance(value, Tensor):
                if self.graph.is_edge_attr(key):
                    cut[key] = value[kept]
                elif self.graph.is_node_attr(key):
                    cut[key] = value[chosen]
        missing = torch.nan if cut.y.is_floating_point() else -1
        cut.y[own:] = missing
        cut.y[:own][~self._known[chosen[:own]]] = missing
        return cut
