r"""B-PEARL's pairs as a bias of the attention.

.. math:: B_{vm} = \Phi(G, e_m)_v W + \Phi(G, e_v)_m W'

is added to the logit of query v and key m. The pairs (v, m) and (m, v) have different values, and both enter.
Rows of the pair encoding are gathered to the pairs of each group of graphs that attention processes together,
(v, m) and (m, v) side by side, and one product projects them for all layers, heads before pairs. What is
gathered are the rows before the readout of :math:`\Phi`, whose weights are joined with W and W'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from graphgps_pearl.contracts import Group
from graphgps_pearl.layers.grouping import DensePairs
from graphgps_pearl.layers.kernels import compiled_pairs
from graphgps_pearl.layers.kernels import pair_gather as kernel
from graphgps_pearl.pearl import PairEncoding
from graphgps_pearl.switches import kernels_enabled


@dataclass(frozen=True, eq=False)
class PairIndex:
    """Which of the R rows of a pair encoding each of the D dense pairs of all groups has.

    Attributes:
        pair_row: the row of every pair of each graph, as :class:`~graphgps_pearl.pearl.PairEncoding` has it.
        num_rows: R.
        groups: the groups.
        sizes: of each group [B_g] the graphs' numbers of nodes.
        starts: of each group [B_g] the graphs' first pairs in ``pair_row``.
    """

    pair_row: Tensor
    num_rows: int
    groups: Sequence[Group]
    sizes: Sequence[Tensor]
    starts: Sequence[Tensor]

    def __getstate__(self) -> dict[str, Any]:
        """What goes to another process or device has all that will be asked for."""
        _ = self.row, self.padding, self.inverse
        return {name: part for name, part in self.__dict__.items() if name != "_pairs"}

    @property
    def num_dense(self) -> int:
        """D."""
        return sum(group.graphs.numel() * group.size**2 for group in self.groups)

    @cached_property
    def row(self) -> Tensor:
        """[2 D] the rows of (v, m) and (m, v), one after the other; those of padding are some row."""
        return self.pair_row[torch.stack(self._pairs, dim=1).flatten()]

    @cached_property
    def padding(self) -> Tensor:
        """[D] -inf where m is padding, else zero."""
        parts = []
        for group in self.groups:
            shape = (group.graphs.numel(), group.size, group.size)
            zeros = torch.zeros(shape, device=self.pair_row.device)
            padding = group.padding(zeros.dtype)
            parts.append((zeros if padding is None else zeros + padding.squeeze(1)).flatten())
        return torch.cat(parts)

    @cached_property
    def inverse(self) -> tuple[Tensor, ...] | None:
        """For (v, m) and for (m, v), [R] where each row is in ``row``; None unless each is one pair's."""
        # Not by the numbers alone: some pairs may share a row while others' rows stand for no pair.
        if self.num_rows != self.pair_row.numel() or bool((self.pair_row.bincount() != 1).any()):
            return None
        dense = torch.cat([inside.flatten() for _, _, inside in self._cells()]).nonzero().squeeze(1)
        return tuple(
            torch.empty_like(self.pair_row).index_copy_(0, self.pair_row[pair[dense]], 2 * dense + side)
            for side, pair in enumerate(self._pairs)
        )

    @cached_property
    def _pairs(self) -> tuple[Tensor, Tensor]:
        """For (v, m) and for (m, v), [D] the pair of each dense pair, the first one where it is padding."""
        pair, reverse_pair = [], []
        for (v, m, inside), sizes, starts in zip(self._cells(), self.sizes, self.starts, strict=True):
            n, first = sizes.view(-1, 1, 1), starts.view(-1, 1, 1)
            pair.append(torch.where(inside, first + v * n + m, 0).flatten())
            reverse_pair.append(torch.where(inside, first + m * n + v, 0).flatten())
        return torch.cat(pair), torch.cat(reverse_pair)

    def _cells(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """For each group v, m and whether both are nodes, [B_g, n_g, n_g] or broadcast to it."""
        for group, sizes in zip(self.groups, self.sizes, strict=True):
            n = sizes.view(-1, 1, 1)
            v = torch.arange(group.size, device=n.device).view(1, -1, 1)
            m = v.transpose(1, 2)
            yield v, m, (v < n) & (m < n)


def project(
    rows: Tensor, weight: Tensor, constant: Tensor | None, index: PairIndex, masked: bool = True
) -> Tensor:
    """Rows [R, F] to the biases [C, D] of all dense pairs, by ``weight`` [2 F, C] and ``constant`` [C].

    ``masked``: they are -inf where the key is padding.
    """
    both = rows.index_select(0, index.row).view(-1, weight.size(0))  # [D, 2 F]
    out = weight.t() @ both.t()
    if constant is not None:
        out = out + constant.unsqueeze(1)
    return out + index.padding.to(rows.dtype) if masked else out


def pair_index(pair_row: Tensor, num_rows: int, sizes: Tensor, groups: Sequence[Group]) -> PairIndex:
    """The index of the groups' dense pairs, one group after the other.

    Args:
        pair_row: the row of every pair of each graph, as :class:`~graphgps_pearl.pearl.PairEncoding` has it.
        num_rows: R.
        sizes: [B] the graphs' numbers of nodes.
        groups: the groups of graphs.
    """
    squares = sizes.square()
    starts = squares.cumsum(0) - squares  # [B] the first pair of each graph
    of_groups = [[t[group.graphs] for group in groups] for t in (sizes, starts)]
    return PairIndex(pair_row, num_rows, groups, *of_groups)


def joined(weight: Tensor, readout: nn.Linear | None) -> tuple[Tensor, Tensor | None]:
    """Weights [2 F, C] and constant [C] for :func:`project`: those of the readout and ``weight`` [D, 2 C]."""
    both = torch.stack(weight.chunk(2, dim=1))  # [2, D, C], for (v, m) and for (m, v)
    if readout is None:
        return both.flatten(0, 1), None
    weight = (readout.weight.t() @ both).flatten(0, 1)
    if readout.bias is None:
        return weight, None
    return weight, (readout.bias.unsqueeze(1) * both.sum(0)).sum(0)


def index_of(pairs: PairEncoding, groups: Sequence[Group], index: PairIndex | None) -> PairIndex:
    """The gather index of the groups: the given one where it is theirs and that of these pairs."""
    # A batch may have been prepared for another network, whose encoding merges other pairs.
    if index is not None and index.groups is groups and index.pair_row is pairs.row:
        return index
    hidden = pairs.hidden
    return pair_index(pairs.row, hidden.size(0), pairs.graphs.sizes, groups)


def projected(
    pairs: PairEncoding, projection: tuple[Tensor, Tensor | None], index: PairIndex, masked: bool = True
) -> Tensor:
    """:func:`project` of the pairs' rows, by the kernel where kernels are on."""
    return (kernel.project if kernels_enabled() else project)(pairs.hidden, *projection, index, masked)


class PairBiases:
    """The biases of all layers, from the rows [R, F] and a projection [2 F, layers·H] with a constant."""

    def __init__(
        self,
        projection: tuple[Tensor, Tensor | None],
        pairs: PairEncoding,
        layers: int,
        index: PairIndex | None,
    ) -> None:
        self._projection, self._pairs, self._layers, self._index = projection, pairs, layers, index
        self._cache: tuple[Sequence[Group], Sequence[Sequence[Tensor]]] | None = None

    def of_layer(self, layer: int, groups: Sequence[Group]) -> Sequence[Tensor]:
        """For each group [B_g, H, n_g, n_g] by (graph, head, query, key), -inf at padded keys."""
        if not groups:
            return []
        if self._cache is None or self._cache[0] is not groups:  # all layers have the same groups
            self._cache = groups, self._of_layers(groups, index_of(self._pairs, groups, self._index))
        return self._cache[1][layer]

    def _of_layers(self, groups: Sequence[Group], index: PairIndex) -> Sequence[Sequence[Tensor]]:
        rows = self._pairs.hidden
        if kernels_enabled() and compiled_pairs.serves(rows, self._projection[0]):
            parts = compiled_pairs.project(rows, *self._projection, index, self._layers)
            return [DensePairs(part, groups) for part in parts]
        by_group = DensePairs(projected(self._pairs, self._projection, index), groups)
        by_layer = [part.unflatten(1, (self._layers, -1)).unbind(1) for part in by_group]
        return list(zip(*by_layer, strict=True))


class PairBias:
    """The bias of one layer; an :class:`~graphgps_pearl.contracts.AttentionBias`."""

    def __init__(self, biases: PairBiases, layer: int) -> None:
        self._biases, self._layer = biases, layer

    def of_groups(self, groups: Sequence[Group]) -> Sequence[Tensor]:
        """For each group [B_g, H, n_g, n_g] by (graph, head, query, key), -inf at padded keys."""
        return self._biases.of_layer(self._layer, groups)


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

    def forward(self, pairs: PairEncoding, index: PairIndex | None = None) -> list[PairBias]:
        """The bias of each layer, or the one of all layers; ``index`` where it is known already."""
        biases = PairBiases(joined(self.weight, pairs.readout), pairs, self.layers, index)
        return [PairBias(biases, layer) for layer in range(self.layers)]

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{self.dim}, heads={self.heads}, layers={self.layers}"
