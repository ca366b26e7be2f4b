"""The nodes of one large graph as small graphs: each with its neighbourhood, whose root alone has a target.

A split of a node task on one graph then is a sequence of graphs like any other: batches, several processes,
resuming and attention within a graph work as they do for molecules. (The scheme is that of ShaDow,
https://arxiv.org/abs/2201.07858.) ``n_id`` has the nodes' numbers in the whole graph, by which R-PEARL draws
their samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data


class Neighbourhoods(Sequence[Data]):
    """For each of some nodes, the subgraph of the nodes within ``hops`` incoming edges of it.

    With ``neighbours`` > 0 at most so many are followed from a node at each hop, drawn at random but always
    the same ones for one root and seed. All edges among the nodes found are kept. The root is the first node.

    Args:
        graph: the whole graph; attributes of nodes and edges go along.
        roots: [R] node numbers.
        hops: how far.
        neighbours: most neighbours followed from a node; 0 = all.
        seed: of the draws.
    """

    def __init__(self, graph: Data, roots: Tensor, hops: int, neighbours: int = 0, seed: int = 0) -> None:
        self.graph, self.roots = graph, roots
        self.hops, self.neighbours, self.seed = hops, neighbours, seed
        source, target = graph.edge_index.numpy()
        self._order = np.argsort(target, kind="stable")  # edges by target
        self._sources = source[self._order]
        counts = np.bincount(target, minlength=int(graph.num_nodes or 0))
        self._starts = np.concatenate((np.zeros(1, np.int64), counts.cumsum()))

    def __len__(self) -> int:
        return len(self.roots)

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
            raise IndexError(f"node {i} of {len(self)}")
        return self._cut(self._nodes(int(self.roots[i])))

    def num_nodes(self) -> Tensor:
        """The most nodes that each graph can have [len(self)], without making it."""
        total = int(self.graph.num_nodes or 0)
        most = total if not self.neighbours else sum(self.neighbours**hop for hop in range(self.hops + 1))
        return torch.full((len(self),), min(most, total))

    def _nodes(self, root: int) -> NDArray[np.int64]:
        """The nodes of a neighbourhood, the root first."""
        rng = np.random.default_rng([self.seed, root])
        found = frontier = np.array([root])
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

    def _cut(self, nodes: NDArray[np.int64]) -> Data:
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
        cut.y[1:] = missing
        return cut
