"""Small random graphs in packed form, for tests of layers and networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgps_pearl.layers import Layout, squared_distance


@dataclass
class Packed:
    """Nodes [N, F], edges [2, E] and [E, D], the graph of each node, and a position [N, 3] of each node."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor
    index: Tensor
    position: Tensor

    @property
    def num_graphs(self) -> int:
        return int(self.index.max()) + 1

    def layout(self) -> Layout:
        return Layout.of(self.index, self.num_graphs, squared_distance(self.position, self.edge_index))

    def arguments(self) -> tuple[Tensor, Tensor, Tensor, Layout]:
        """What a layer is called with."""
        return self.x, self.edge_index, self.edge_attr, self.layout()

    def graph(self, number: int) -> Packed:
        """One of the graphs by itself."""
        nodes = (self.index == number).nonzero().flatten()
        edges = self.index[self.edge_index[0]] == number
        return Packed(
            self.x[nodes],
            self.edge_index[:, edges] - nodes[0],
            self.edge_attr[edges],
            torch.zeros_like(nodes),
            self.position[nodes],
        )

    def permuted(self, seed: int = 0) -> tuple[Packed, Tensor, Tensor]:
        """The same graphs, nodes shuffled inside each and edges shuffled; new node k was node order[k]."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.argsort(self.index + 0.9 * torch.rand(len(self.index), generator=generator))
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order))
        edges = torch.randperm(self.edge_index.size(1), generator=generator)
        shuffled = Packed(
            self.x[order],
            place[self.edge_index[:, edges]],
            self.edge_attr[edges],
            self.index[order],
            self.position[order],
        )
        return shuffled, order, edges


def packed_graphs(
    sizes: tuple[int, ...] = (5, 1, 9, 3, 2),
    dim: int = 8,
    edge_dim: int | None = None,
    dtype: torch.dtype = torch.float64,
    density: float = 0.4,
    seed: int = 0,
) -> Packed:
    """Undirected random graphs of the given sizes; the last has no edges where it has two nodes."""
    generator = torch.Generator().manual_seed(seed)
    edges, index, first = [], [], 0
    for number, size in enumerate(sizes):
        adjacency = torch.rand(size, size, generator=generator) < (density if size > 2 else 0.0)
        adjacency = (adjacency | adjacency.T).fill_diagonal_(False)
        edges.append(adjacency.nonzero().T + first)
        index.append(torch.full((size,), number))
        first += size
    edge_index = torch.cat(edges, dim=1)
    return Packed(
        torch.randn(first, dim, generator=generator, dtype=dtype),
        edge_index,
        torch.randn(edge_index.size(1), edge_dim or dim, generator=generator, dtype=dtype),
        torch.cat(index),
        torch.randn(first, 3, generator=generator, dtype=dtype),
    )
