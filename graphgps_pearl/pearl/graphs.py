r"""A batch of graphs as the encodings see it: edges and membership, no features.

PyG's conventions throughout: edge :math:`(u, v)` carries messages from ``edge_index[0]`` (source) to
``edge_index[1]`` (target); ``batch`` names each node's graph and is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Graphs:
    """A checked batch of graphs; build it with :func:`check_graphs`.

    Attributes:
        edge_index: source and target of every edge, :obj:`[2, E]`.
        graph: the graph of every node, :obj:`[N]`, sorted.
        sizes: the number of nodes of every graph, :obj:`[B]`; zero for an empty entry.
    """

    edge_index: Tensor
    graph: Tensor
    sizes: Tensor

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return self.graph.numel()

    @property
    def node_sizes(self) -> Tensor:
        """For every node the number of nodes of its own graph, :obj:`[N]`."""
        return self.sizes[self.graph]

    @property
    def position(self) -> Tensor:
        """Every node's position in its own graph, counted from 0, :obj:`[N]`."""
        first = self.sizes.cumsum(0) - self.sizes
        return torch.arange(self.num_nodes, device=self.graph.device) - first[self.graph]


def check_graphs(edge_index: Tensor, batch: Tensor | None = None, num_nodes: int | None = None) -> Graphs:
    """Check what a user passed and return it as :class:`Graphs`; a :class:`ValueError` says what is wrong.

    Without ``num_nodes`` it is the length of ``batch``, or one more than the largest node of ``edge_index``.

    >>> graphs = check_graphs(torch.tensor([[0, 1, 2], [1, 0, 3]]), batch=torch.tensor([0, 0, 2, 2]))
    >>> graphs.sizes.tolist(), graphs.position.tolist()
    ([2, 0, 2], [0, 1, 0, 1])
    """
    if not isinstance(edge_index, Tensor):
        raise ValueError(
            f"edge_index must be a tensor, got {type(edge_index).__name__}; "
            "pass data.edge_index, data.batch, data.num_nodes"
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape [2, num_edges], got {list(edge_index.shape)}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"edge_index must hold integers (torch.long), got {edge_index.dtype}")
    edge_index = edge_index.long()
    largest = int(edge_index.max()) if edge_index.numel() else -1
    known = "there are {} nodes"
    if num_nodes is None and batch is not None:
        known = "batch has {} entries"
        num_nodes = batch.numel()
    elif num_nodes is None:
        num_nodes = largest + 1
    if num_nodes < 0:
        raise ValueError(f"num_nodes must not be negative, got {num_nodes}")
    if edge_index.numel() and (int(edge_index.min()) < 0 or largest >= num_nodes):
        raise ValueError(
            f"edge_index names nodes {int(edge_index.min())} to {largest}, but {known.format(num_nodes)}"
        )
    if batch is None:
        sizes = torch.tensor([num_nodes], device=edge_index.device)
        return Graphs(edge_index, edge_index.new_zeros(num_nodes), sizes)
    return Graphs(edge_index, *_check_batch(batch, edge_index, num_nodes))


def _check_batch(batch: Tensor, edge_index: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    if batch.dim() != 1 or batch.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"batch must be a vector of integers, got shape {list(batch.shape)} of {batch.dtype}"
        )
    if batch.numel() != num_nodes:
        raise ValueError(f"batch has {batch.numel()} entries, but there are {num_nodes} nodes")
    if num_nodes and int(batch[0]) < 0:
        raise ValueError("batch must not hold negative graph numbers")
    if bool((batch[1:] < batch[:-1]).any()):
        raise ValueError("batch must be sorted: the nodes of one graph stand together, graphs in order")
    graph = batch.long()
    crossing = graph[edge_index[0]] != graph[edge_index[1]]
    if bool(crossing.any()):
        u, v = edge_index[:, int(crossing.nonzero()[0])].tolist()
        raise ValueError(
            f"edge ({u}, {v}) joins two graphs of the batch ({int(graph[u])} and {int(graph[v])})"
        )
    return graph, torch.bincount(graph)
