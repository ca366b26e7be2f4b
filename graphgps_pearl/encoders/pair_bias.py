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


class PairBiases:
    """The biases of all layers: values [2R, layers·H] of the rows, gathered for one group after the other."""

    def __init__(self, value: Tensor, pairs: PairEncoding, layers: int) -> None:
        self._value, self._row, self._layers = value, pairs.row, layers
        self._sizes = pairs.graphs.sizes
        squares = self._sizes.square()
        self._first = squares.cumsum(0) - squares  # [B] where each graph's pairs begin
        self._made: dict[int, tuple[Group, tuple[Tensor, ...]]] = {}

    def of_group(self, group: Group) -> tuple[Tensor, ...]:
        """For each layer [B_g, H, n_g, n_g] by (graph, head, query, key), zero at padding."""
        if id(group) not in self._made:  # the layers ask one after the other; all are gathered at once
            pairs = self._gather(group) @ self._value  # [B_g·n_g·n_g, layers·H]
            shape = (-1, group.size, group.size, self._layers, pairs.size(1) // self._layers)
            biases = pairs.view(shape).permute(3, 0, 4, 1, 2).contiguous().unbind(0)
            self._made[id(group)] = group, biases
        return self._made[id(group)][1]

    def _gather(self, group: Group) -> SparseMatrix:
        """[B_g·n_g·n_g, 2R]: for (v, m) its row, and that of (m, v) among the second R; padding has none."""
        n = self._sizes[group.graphs].view(-1, 1, 1)
        v = torch.arange(group.size, device=n.device).view(1, -1, 1)
        m = v.transpose(1, 2)
        inside = (v < n) & (m < n)  # [B_g, n_g, n_g]
        first = self._first[group.graphs].view(-1, 1, 1)
        there, back = (first + v * n + m)[inside], (first + m * n + v)[inside]
        num_rows = self._value.size(0) // 2
        col = torch.stack([self._row[there], num_rows + self._row[back]], dim=1).flatten()
        crow = torch.cat([inside.new_zeros(1, dtype=torch.long), (2 * inside.flatten()).cumsum(0)])
        return SparseMatrix(crow, col, torch.ones_like(col, dtype=self._value.dtype), 2 * num_rows)


class PairBias:
    """The bias of one layer."""

    def __init__(self, biases: PairBiases, layer: int) -> None:
        self._biases, self._layer = biases, layer

    def of_group(self, group: Group) -> Tensor:
        """[B_g, H, n_g, n_g] by (graph, head, query, key), zero at padding."""
        return self._biases.of_group(group)[self._layer]


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
        self.weight = nn.Parameter(torch.zeros(dim, 2 * layers * heads))  # (v, m), then (m, v)

    def forward(self, pairs: PairEncoding) -> PairBias | list[PairBias]:
        """The bias of all layers, or a list with one for each."""
        there, back = (pairs.value @ self.weight).chunk(2, dim=1)  # [R, layers·H] each
        biases = PairBiases(torch.cat([there, back]), pairs, self.layers)
        made = [PairBias(biases, layer) for layer in range(self.layers)]
        return made if self.layers > 1 else made[0]

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{self.dim}, heads={self.heads}, layers={self.layers}"
