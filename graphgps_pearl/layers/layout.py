r"""What every layer needs to know of a batch of graphs, computed once per batch.

Nodes of all graphs lie packed, one under the other: ``x`` is [N, F], N = Σ_b n_b. Attention wants them dense:
[B, n, F] with n = max_b n_b, where graph b fills its first n_b rows and the rest is padding. A
:class:`Layout` holds the way from one to the other, and keeps whatever else depends on the batch alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

from graphgps_pearl.layers.grouping import Grouping, group_graphs

T = TypeVar("T")


@dataclass(frozen=True)
class Layout:
    """Where the nodes of a batch lie.

    Attributes:
        index: [N] the graph of each node, ascending.
        num_graphs: B.
        sizes: [B] the graphs' numbers of nodes.
        max_size: n, the largest of them.
        slot: [N] each node's row among the B·n dense ones, or None where the graphs have equal sizes (then
            packed and dense are the same numbers in the same order).
        distance: [E, 1] ``|p_i - p_j|²`` over the edges, for layers that weigh messages by it; else None.
    """

    index: Tensor
    num_graphs: int
    sizes: Tensor
    max_size: int
    slot: Tensor | None
    distance: Tensor | None = None
    _kept: dict[str, tuple[object, Any]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, index: Tensor, num_graphs: int | None = None, distance: Tensor | None = None) -> Layout:
        """The layout of the nodes that ``index`` [N] (ascending) assigns to graphs."""
        if num_graphs is None:
            num_graphs = int(index[-1]) + 1 if index.numel() else 0
        sizes = torch.bincount(index, minlength=num_graphs)
        max_size = int(sizes.max()) if num_graphs else 0
        if num_graphs * max_size == index.numel():
            return cls(index, num_graphs, sizes, max_size, None, distance)
        first = sizes.cumsum(0) - sizes
        place = torch.arange(index.numel(), device=index.device) - first[index]
        return cls(index, num_graphs, sizes, max_size, index * max_size + place, distance)

    def to_dense(self, x: Tensor) -> Tensor:
        """Packed [N, ...] to dense [B, n, ...], zero at padding."""
        shape = (self.num_graphs, self.max_size, *x.shape[1:])
        if self.slot is None:
            return x.reshape(shape)
        dense = x.new_zeros(self.num_graphs * self.max_size, *x.shape[1:])
        return dense.index_copy(0, self.slot, x).view(shape)

    def to_packed(self, dense: Tensor) -> Tensor:
        """Dense [B, n, ...] to packed [N, ...]: padding is left behind."""
        rows = dense.flatten(0, 1)
        return rows if self.slot is None else rows.index_select(0, self.slot)

    @property
    def grouping(self) -> Grouping:
        """The graphs in groups of similar size, made when first asked for."""
        return self.once("grouping", self.index, lambda: group_graphs(self.sizes))

    def log_degree(self, edge_index: Tensor, dtype: torch.dtype) -> Tensor:
        """[N, 1] log(1 + in-degree) of every node."""

        def compute() -> Tensor:
            return torch.bincount(edge_index[1], minlength=self.index.numel()).to(dtype).log1p().unsqueeze(1)

        return self.once(f"log degree in {dtype}", edge_index, compute)

    def once(self, name: str, source: object, compute: Callable[[], T]) -> T:
        """``compute()``, kept under ``name`` for as long as it is asked for with the same ``source`` object.

        Layers of a network that share an input (the edges, say) so share what follows from it.
        """
        kept = self._kept.get(name)
        if kept is None or kept[0] is not source:
            kept = self._kept[name] = (source, compute())
        return kept[1]


def squared_distance(position: Tensor, edge_index: Tensor) -> Tensor:
    """``|p_i - p_j|²`` for every edge (j, i), [E, 1], of the node positions [N, d]."""
    source, target = edge_index
    return (position[target] - position[source]).square().sum(dim=-1, keepdim=True)
