r"""B-PEARL's pairs as a bias of the attention.

.. math:: B_{vm} = \Phi(G, e_m)_v W + \Phi(G, e_v)_m W'

is added to the logit of query v and key m; (v, m) and (m, v) carry different values, and both count. The
projections run on the different rows, and what they give is gathered to the pairs of each group of graphs
that attention takes together.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl import PairEncoding, SparseMatrix


class Group(Protocol):
    """Graphs that attention takes together: which ones, and the size they are padded to."""

    @property
    def graphs(self) -> Tensor:
        """[B_g]."""

    @property
    def size(self) -> int:
        """n_g."""


class PairGather:
    """Which rows make up the bias of each pair; made once for each group of a batch."""

    def __init__(self, pairs: PairEncoding) -> None:
        self._row, self._sizes = pairs.row, pairs.graphs.sizes
        squares = self._sizes.square()
        self._first = squares.cumsum(0) - squares  # [B] where each graph's pairs begin
        self._num_rows, self._dtype = pairs.value.size(0), pairs.value.dtype
        self._made: dict[int, tuple[Group, SparseMatrix]] = {}

    def of_group(self, group: Group) -> SparseMatrix:
        """[B_g·n_g·n_g, 2R]: for (v, m) its row, and that of (m, v) among the second R; padding has none."""
        if id(group) not in self._made:
            self._made[id(group)] = (group, self._make(group))
        return self._made[id(group)][1]

    def _make(self, group: Group) -> SparseMatrix:
        n = self._sizes[group.graphs].view(-1, 1, 1)
        v = torch.arange(group.size, device=n.device).view(1, -1, 1)
        m = v.transpose(1, 2)
        inside = (v < n) & (m < n)  # [B_g, n_g, n_g]
        first = self._first[group.graphs].view(-1, 1, 1)
        there, back = (first + v * n + m)[inside], (first + m * n + v)[inside]
        col = torch.stack([self._row[there], self._num_rows + self._row[back]], dim=1).flatten()
        crow = torch.cat([inside.new_zeros(1, dtype=torch.long), (2 * inside.flatten()).cumsum(0)])
        return SparseMatrix(crow, col, torch.ones_like(col, dtype=self._dtype), 2 * self._num_rows)


class PairBias:
    """The bias of one layer: values [2R, H] of the rows, gathered group by group."""

    def __init__(self, value: Tensor, gather: PairGather) -> None:
        self.value, self._gather = value, gather

    def of_group(self, group: Group) -> Tensor:
        """[B_g, H, n_g, n_g] by (graph, head, query, key), zero at padding."""
        pairs = self._gather.of_group(group) @ self.value  # [B_g·n_g·n_g, H]
        return pairs.view(-1, group.size, group.size, self.value.size(1)).permute(0, 3, 1, 2)


class PairBiasProjection(nn.Module):
    """Projections of pairs to attention biases, zero at the start.

    Args:
        dim: D, columns of the pairs.
        heads: H.
        layers: how many biases; 1 makes one that all layers share.
    """

    def __init__(self, dim: int, heads: int, layers: int) -> None:
        super().__init__()
        self.dim, self.heads, self.layers = dim, heads, layers
        self.weight = nn.Parameter(torch.zeros(dim, layers * 2 * heads))

    def forward(self, pairs: PairEncoding) -> PairBias | list[PairBias]:
        """The bias of all layers, or a list with one for each."""
        gather = PairGather(pairs)
        values = (pairs.value @ self.weight).view(-1, self.layers, 2, self.heads)
        values = values.permute(1, 2, 0, 3).reshape(self.layers, -1, self.heads)  # [layers, 2R, H]
        biases = [PairBias(value, gather) for value in values.unbind(0)]
        return biases if self.layers > 1 else biases[0]

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{self.dim}, heads={self.heads}, layers={self.layers}"
