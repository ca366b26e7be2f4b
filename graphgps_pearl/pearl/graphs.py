r"""A batch of graphs as the encodings see it: edges and membership, no features.

PyG's conventions throughout: edge :math:`(u, v)` carries messages from ``edge_index[0]`` (source) to
``edge_index[1]`` (target); ``batch`` holds each node's graph and is sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import torch
from torch import Tensor


@dataclass(frozen=True)
class Graphs:
    """A checked batch of graphs; build it with :func:`check_graphs`.

    Attributes:
        edge_index: source and target of every edge, :obj:`[2, E]`.
        graph: the graph of every node, :obj:`[N]`, sorted.
        sizes: the number of nodes of every graph, :obj:`[B]`; zero for an empty entry.
        edge_weight: the weight of every edge, :obj:`[E]`; None: 1 each.
        n_id: the nodes' numbers in the graph that these are parts of, :obj:`[N]`, where a ``Data`` has them.
        prepared: what an encoding has computed from these graphs in advance, by name.
    """

    edge_index: Tensor
    graph: Tensor
    sizes: Tensor
    edge_weight: Tensor | None = None
    n_id: Tensor | None = None
    prepared: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def get(self, name: Hashable, compute: Callable[[Graphs], Any]) -> Any:
        """What was prepared under this name, or else ``compute(self)``."""
        return self.prepared[name] if name in self.prepared else compute(self)

    def prepare(self, name: Hashable, compute: Callable[[Graphs], Any]) -> Graphs:
        """These graphs, with ``compute(self)`` prepared."""
        bare = replace(self, prepared={})  # else what is computed and the graphs would hold each other
        return replace(self, prepared={**self.prepared, name: compute(bare)})

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return self.graph.numel()

    @property
    def num_graphs(self) -> int:
        """Number of graphs, B."""
        return self.sizes.numel()

    @cached_property
    def host_sizes(self) -> list[int]:
        """``sizes`` as plain integers."""
        return self.sizes.tolist()

    @property
    def num_pairs(self) -> int:
        """Number of ordered pairs of nodes of the same graph."""
        return sum(size * size for size in self.host_sizes)

    @cached_property
    def node_sizes(self) -> Tensor:
        """For every node the number of nodes of its own graph, :obj:`[N]`."""
        return self.sizes[self.graph]

    @cached_property
    def position(self) -> Tensor:
        """Every node's position in its own graph, counted from 0, :obj:`[N]`."""
        first = self.sizes.cumsum(0) - self.sizes
        return torch.arange(self.num_nodes, device=self.graph.device) - first[self.graph]


def check_graphs(
    edge_index: Tensor | Any,
    batch: Tensor | None = None,
    num_nodes: int | None = None,
    edge_weight: Tensor | None = None,
) -> Graphs:
    """Check what a user passed and return it as :class:`Graphs`; a :class:`ValueError` says what is wrong.

    A PyG ``Data`` or ``Batch`` instead of ``edge_index`` brings all four; :class:`Graphs` stay as they are.
    Without ``num_nodes`` it is the length of ``batch``, or one more than the largest node of ``edge_index``.

    >>> graphs = check_graphs(torch.tensor([[0, 1, 2], [1, 0, 3]]), batch=torch.tensor([0, 0, 2, 2]))
    >>> graphs.sizes.tolist(), graphs.position.tolist()
    ([2, 0, 2], [0, 1, 0, 1])
    """
    if isinstance(edge_index, Graphs):
        return edge_index
    n_id = getattr(edge_index, "n_id", None)
    if not isinstance(edge_index, Tensor):
        edge_index, batch, num_nodes, edge_weight = _from_data(edge_index, batch, num_nodes, edge_weight)
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape [2, num_edges], got {list(edge_index.shape)}")
    if edge_index.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"edge_index must hold integers (torch.long), got {edge_index.dtype}")
    edge_index = edge_index.long()
    counted = num_nodes is None and batch is not None
    if num_nodes is None:
        num_nodes = batch.numel() if batch is not None else _largest(edge_index) + 1
    if num_nodes < 0:
        raise ValueError(f"num_nodes must not be negative, got {num_nodes}")
    if edge_weight is not None:
        edge_weight = _check_weight(edge_weight, edge_index.size(1))
    if batch is not None:
        _check_batch_shape(batch, num_nodes)
    graph = edge_index.new_zeros(num_nodes) if batch is None else batch.long()
    num_graphs, valid = _summary(edge_index, graph)
    if not valid:
        _explain(edge_index, graph, num_nodes, f"batch has {num_nodes} entries" if counted else None)
    if batch is None:
        return Graphs(edge_index, graph, torch.tensor([num_nodes], device=graph.device), edge_weight, n_id)
    sizes = graph.new_zeros(num_graphs).index_add_(0, graph, torch.ones_like(graph))
    return Graphs(edge_index, graph, sizes, edge_weight, n_id)


def _largest(edge_index: Tensor) -> int:
    return int(edge_index.max()) if edge_index.numel() else -1


def _summary(edge_index: Tensor, graph: Tensor) -> tuple[int, bool]:
    """The number of graphs and whether everything is in order, with one wait for a GPU."""
    num_nodes = graph.numel()
    if not num_nodes:
        return 0, not edge_index.numel()
    valid = (graph[0] >= 0) & (graph[1:] >= graph[:-1]).all()
    if edge_index.numel():
        inside = (edge_index >= 0) & (edge_index < num_nodes)
        ends = graph[edge_index.clamp(0, num_nodes - 1)]
        valid = valid & inside.all() & (ends[0] == ends[1]).all()
    last, ok = torch.stack([graph[-1], valid.long()]).tolist()
    return last + 1, bool(ok)


def _explain(edge_index: Tensor, graph: Tensor, num_nodes: int, known: str | None) -> NoReturn:
    """Raise the error that names what is wrong."""
    if edge_index.numel() and (int(edge_index.min()) < 0 or _largest(edge_index) >= num_nodes):
        raise ValueError(
            f"edge_index names nodes {int(edge_index.min())} to {_largest(edge_index)}, but "
            + (known or f"there are {num_nodes} nodes")
        )
    if int(graph[0]) < 0:
        raise ValueError("batch must not hold negative graph numbers")
    if bool((graph[1:] < graph[:-1]).any()):
        raise ValueError("batch must be sorted: the nodes of one graph are contiguous, graphs in order")
    crossing = graph[edge_index[0]] != graph[edge_index[1]]
    u, v = edge_index[:, int(crossing.nonzero()[0])].tolist()
    raise ValueError(f"edge ({u}, {v}) joins two graphs of the batch ({int(graph[u])} and {int(graph[v])})")


def _from_data(
    data: Any, batch: Tensor | None, num_nodes: int | None, edge_weight: Tensor | None
) -> tuple[Tensor, Tensor | None, int | None, Tensor | None]:
    """``edge_index``, ``batch``, ``num_nodes`` and ``edge_weight`` of a PyG ``Data`` or ``Batch``."""
    if hasattr(data, "edge_types"):
        raise ValueError(
            f"{type(data).__name__} has nodes and edges of several types: pass data.to_homogeneous()"
        )
    edges = getattr(data, "edge_index", None)
    if edges is None and hasattr(data, "edge_index"):
        raise ValueError(
            f"this {type(data).__name__} has no edge_index; a graph without edges has one of shape [2, 0]"
        )
    if not isinstance(edges, Tensor):
        raise ValueError(
            f"edge_index must be a tensor or a PyG Data, got {type(data).__name__}; "
            "pass data.edge_index, data.batch, data.num_nodes"
        )
    if batch is None:
        batch = getattr(data, "batch", None)
    if edge_weight is None:
        edge_weight = getattr(data, "edge_weight", None)
    return edges, batch, data.num_nodes if num_nodes is None else num_nodes, edge_weight


def _check_weight(edge_weight: Tensor, num_edges: int) -> Tensor:
    if edge_weight.shape != (num_edges,) or not edge_weight.is_floating_point():
        raise ValueError(
            f"edge_weight must hold one floating-point number for each of the {num_edges} edges, got shape "
            f"{list(edge_weight.shape)} of {edge_weight.dtype}"
        )
    if not bool((edge_weight >= 0).all()) or not bool(edge_weight.isfinite().all()):
        raise ValueError("edge_weight must be finite and not negative: degrees are divided by")
    if edge_weight.requires_grad and torch.is_grad_enabled():
        raise ValueError("edge_weight must not require a gradient, there is none: pass edge_weight.detach()")
    return edge_weight.detach()


def _check_batch_shape(batch: Tensor, num_nodes: int) -> None:
    if batch.dim() != 1 or batch.dtype not in (torch.int64, torch.int32):
        raise ValueError(
            f"batch must be a vector of integers, got shape {list(batch.shape)} of {batch.dtype}"
        )
    if batch.numel() != num_nodes:
        raise ValueError(f"batch has {batch.numel()} entries, but there are {num_nodes} nodes")
