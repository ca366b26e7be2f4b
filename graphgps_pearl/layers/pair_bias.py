r"""B-PEARL's pairs as a bias of the attention.

.. math:: B_{vm} = \Phi(G, e_m)_v W + \Phi(G, e_v)_m W'

is added to the logit of query v and key m. The pairs (v, m) and (m, v) have different values, and both enter.
Rows of the pair encoding are gathered to the pairs of each group of graphs that attention processes together,
(v, m) and (m, v) side by side, and one product projects them for all layers, heads before pairs. What is
gathered are the rows before the readout of :math:`\Phi`, whose weights are joined with W and W'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from graphgps_pearl import compiled
from graphgps_pearl.contracts import Group
from graphgps_pearl.layers.grouping import DensePairs
from graphgps_pearl.layers.kernels import compiled_pairs
from graphgps_pearl.layers.kernels import pair_gather as kernel
from graphgps_pearl.pearl import PairEncoding
from graphgps_pearl.switches import kernels_enabled


class PairIndex(NamedTuple):
    """Gather index from the R rows of a pair encoding to the D dense pairs of all groups.

    Attributes:
        row: [2 D] the rows of (v, m) and (m, v), one after the other. Pairs that are padding repeat some row.
        padding: [D] -inf where m is padding, else zero.
        inverse: for (v, m) and for (m, v), [R] where each row is in ``row``; None where pairs share rows, or
            where compiled code does without.
        groups: the groups.
        sizes: of each group [B_g] the graphs' numbers of nodes.
    """

    row: Tensor
    padding: Tensor
    inverse: tuple[Tensor, ...] | None
    groups: Sequence[Group]
    sizes: Sequence[Tensor]


def project(rows: Tensor, weight: Tensor, constant: Tensor | None, index: PairIndex) -> Tensor:
    """Rows [R, F] to the biases [C, D] of all dense pairs, by ``weight`` [2 F, C] and ``constant`` [C]."""
    both = rows.index_select(0, index.row).view(-1, weight.size(0))  # [D, 2 F]
    added = index.padding if constant is None else constant.unsqueeze(1) + index.padding
    return weight.t() @ both.t() + added


def pair_index(
    row: Tensor, num_rows: int, sizes: Tensor, groups: Sequence[Group], dtype: torch.dtype
) -> PairIndex:
    """The gather index of the groups' dense pairs, one group after the other.

    Args:
        row: the row of every pair of each graph, as :class:`~graphgps_pearl.pearl.PairEncoding` has it.
        num_rows: R.
        sizes: [B] the graphs' numbers of nodes.
        groups: the groups of graphs.
        dtype: of the bias.
    """
    squares = sizes.square()
    starts = squares.cumsum(0) - squares  # [B] the first pair of each graph
    pair, reverse_pair, added, insides = [], [], [], []
    for group in groups:
        n, first = (t[group.graphs].view(-1, 1, 1) for t in (sizes, starts))
        v = torch.arange(group.size, device=n.device).view(1, -1, 1)
        m = v.transpose(1, 2)
        inside = (v < n) & (m < n)  # [B_g, n_g, n_g]
        pair.append(torch.where(inside, first + v * n + m, 0).flatten())
        reverse_pair.append(torch.where(inside, first + m * n + v, 0).flatten())
        insides.append(inside.flatten())
        padding = group.padding(dtype)
        zeros = torch.zeros(inside.shape, dtype=dtype, device=n.device)
        added.append((zeros if padding is None else zeros + padding.squeeze(1)).flatten())
    of_groups = [sizes[group.graphs] for group in groups]
    both, inside = (torch.cat(pair), torch.cat(reverse_pair)), torch.cat(insides)
    inverse = None
    if num_rows == row.numel() and not (row.device.type == "cpu" and compiled.available()):
        # every pair has a row of its own
        dense = inside.nonzero().squeeze(1)
        inverse = tuple(
            torch.empty_like(row).index_copy_(0, row[p[dense]], 2 * dense + side)
            for side, p in enumerate(both)
        )
    return PairIndex(row[torch.stack(both, dim=1).flatten()], torch.cat(added), inverse, groups, of_groups)


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
    """The gather index of the groups: the given one where it is theirs."""
    if index is not None and index.groups is groups:
        return index
    hidden = pairs.hidden
    return pair_index(pairs.row, hidden.size(0), pairs.graphs.sizes, groups, hidden.dtype)


def projected(pairs: PairEncoding, projection: tuple[Tensor, Tensor | None], index: PairIndex) -> Tensor:
    """:func:`project` of the pairs' rows, by the kernel where kernels are on."""
    return (kernel.project if kernels_enabled() else project)(pairs.hidden, *projection, index)


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
