r"""Which node belongs to which graph of a batch, and what layers compute from that once per batch.

Nodes of all graphs are packed, one graph after the other: ``x`` is [N, F], N = Σ_b n_b. Dense form is
[B, n, F] with n = max_b n_b, where graph b fills its first n_b rows and the rest is padding. A
:class:`Layout` converts between the two, and caches what depends on the batch alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphgps_pearl.layers.grouping import Grouping, group_cost, group_graphs

T = TypeVar("T")


@dataclass(frozen=True)
class Layout:
    """The nodes of a batch.

    Attributes:
        index: [N] the graph of each node, ascending.
        num_graphs: B.
        sizes: [B] the graphs' numbers of nodes.
        max_size: n, the largest of them.
        slot: [N] each node's row among the B·n dense ones, or None where the graphs have equal sizes (then
            packed and dense are the same numbers in the same order).
        distance: [E, 1] ``|p_i - p_j|²`` over the edges, for layers that weight messages by it; else None.
    """

    index: Tensor
    num_graphs: int
    sizes: Tensor
    max_size: int
    slot: Tensor | None
    distance: Tensor | None = None
    _cache: dict[str, tuple[object, Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, index: Tensor, num_graphs: int | None = None, distance: Tensor | None = None) -> Layout:
        """The layout of the nodes that ``index`` [N] (ascending) assigns to graphs."""
        if num_graphs is None:
            num_graphs = int(index.max()) + 1 if index.numel() else 0
        sizes = index.new_zeros(num_graphs).index_add_(0, index, torch.ones_like(index))
        max_size, unsorted = 0, 0
        if num_graphs:  # one wait for a GPU
            max_size, unsorted = torch.stack([sizes.max(), (index[1:] < index[:-1]).sum()]).tolist()
        if unsorted:
            raise ValueError("batch must be sorted: the nodes of one graph are contiguous, graphs in order")
        if num_graphs * max_size == index.numel():
            return cls(index, num_graphs, sizes, max_size, None, distance)
        first = sizes.cumsum(0) - sizes
        within = torch.arange(index.numel(), device=index.device) - first[index]
        return cls(index, num_graphs, sizes, max_size, index * max_size + within, distance)

    def to_dense(self, x: Tensor) -> Tensor:
        """Packed [N, ...] to dense [B, n, ...], zero at padding."""
        shape = (self.num_graphs, self.max_size, *x.shape[1:])
        if self.slot is None:
            return x.reshape(shape)
        dense = x.new_zeros(self.num_graphs * self.max_size, *x.shape[1:])
        return dense.index_copy(0, self.slot, x).view(shape)

    def to_packed(self, dense: Tensor) -> Tensor:
        """Dense [B, n, ...] to packed [N, ...], without the padding."""
        rows = dense.flatten(0, 1)
        return rows if self.slot is None else rows.index_select(0, self.slot)

    @property
    def grouping(self) -> Grouping:
        """The graphs in groups of similar size, computed at the first use."""
        return self.group(self.index.device.type)

    def group(self, device: str) -> Grouping:
        """The same, in the groups that are best for a kind of device (``cpu``, ``cuda``)."""
        return self.cached("grouping", self.index, lambda: group_graphs(self.sizes, group_cost(device)))

    def padding(self, dtype: torch.dtype) -> list[Tensor | None]:
        """For each group the bias of the logits that hides its padding, see ``Group.padding``."""
        return self.cached(
            f"padding in {dtype}",
            self.index,
            lambda: [group.padding(dtype) for group in self.grouping.groups],
        )

    def log_degree(self, edge_index: Tensor, dtype: torch.dtype) -> Tensor:
        """[N, 1] log(1 + in-degree) of every node."""

        def compute() -> Tensor:
            ones = torch.ones(edge_index.size(1), 1, dtype=dtype, device=edge_index.device)
            return wide_sum(ones, edge_index[1], self.index.numel()).log1p_().to(dtype)

        return self.cached(f"log degree in {dtype}", edge_index, compute)

    def cached(self, name: str, source: object, compute: Callable[[], T]) -> T:
        """``compute()``, cached under ``name`` while it is called with the same ``source`` object.

        Layers that share an input (the edges, for example) share what is computed from it.
        """
        entry = self._cache.get(name)
        if entry is None or entry[0] is not source:
            entry = self._cache[name] = (source, compute())
        return entry[1]


def wide(x: Tensor) -> Tensor:
    """x in float32 at least, for sums over nodes: on a GPU those in bfloat16 count to 256 and no further,
    those in float16 to 2,048, and above 65,504 they are infinite."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def wide_sum(x: Tensor, index: Tensor, count: int) -> Tensor:
    """Rows of x [N, ...] added up by their ``index`` [N], :func:`wide`: [count, ...]."""
    x = wide(x)
    return x.new_zeros(count, *x.shape[1:]).index_add_(0, index, x)


def squared_distance(position: Tensor, edge_index: Tensor) -> Tensor:
    """``|p_i - p_j|²`` for every edge (j, i), [E, 1], of the node positions [N, d]."""
    source, target = edge_index
    return (position[target] - position[source]).square().sum(dim=-1, keepdim=True)
