r"""B-PEARL's pairs as a bias of the attention.

.. math:: B_{vm} = \Phi(G, e_m)_v W + \Phi(G, e_v)_m W'

is added to the logit of query v and key m; (v, m) and (m, v) carry different values, and both count. The
projections run on the different rows, and what they give is gathered to the pairs of the groups of graphs
that attention takes together, heads before pairs, as attention wants them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from graphgps_pearl.pearl import PairEncoding


class Group(Protocol):
    """Graphs that attention takes together."""

    @property
    def graphs(self) -> Tensor:
        """[B_g] which ones."""

    @property
    def size(self) -> int:
        """n_g, the size they are padded to."""

    def padding(self, dtype: torch.dtype) -> Tensor | None:
        """[B_g, 1, 1, n_g], zero at nodes and -inf at padding; none where nothing is padded."""


class PairBiases:
    """The biases of all layers, from values [2·layers·H, R] of the rows: (v, m) in the first half of them."""

    def __init__(self, value: Tensor, pairs: PairEncoding, layers: int) -> None:
        self._value, self._pairs, self._layers = value, pairs, layers
        self._made: tuple[Sequence[Group], list[tuple[Tensor, ...]]] | None = None

    def of_groups(self, groups: Sequence[Group]) -> list[tuple[Tensor, ...]]:
        """For each group and layer [B_g, H, n_g, n_g] by (graph, head, query, key), -inf at padded keys."""
        if not groups:
            return []
        if self._made is None or self._made[0] is not groups:  # one layer asks after the other
            sizes = [group.graphs.numel() * group.size**2 for group in groups]
            parts = _Gather.apply(self._value, _places(self._pairs, groups)).split(sizes, dim=1)
            self._made = groups, [self._views(part, group) for part, group in zip(parts, groups, strict=True)]
        return self._made[1]

    def _views(self, part: Tensor, group: Group) -> tuple[Tensor, ...]:
        by_layer = part.view(self._layers, -1, group.graphs.numel(), group.size, group.size).unbind(0)
        return tuple(bias.transpose(0, 1) for bias in by_layer)


class _Places(NamedTuple):
    """Where the D dense pairs of all groups find their rows; padding has that of some pair."""

    there: Tensor  # [D] row of (v, m)
    back: Tensor  # [D] row of (m, v)
    added: Tensor  # [D] -inf where m is padding, else zero
    ways_back: tuple[Tensor, ...] | None  # [R] the dense pair of each row, for both, if each has just one


def _places(pairs: PairEncoding, groups: Sequence[Group]) -> _Places:
    sizes, row = pairs.graphs.sizes, pairs.row
    squares = sizes.square()
    starts = squares.cumsum(0) - squares  # [B] where each graph's pairs begin
    pair, swapped, added, insides = [], [], [], []
    for group in groups:
        n, first = (t[group.graphs].view(-1, 1, 1) for t in (sizes, starts))
        v = torch.arange(group.size, device=n.device).view(1, -1, 1)
        m = v.transpose(1, 2)
        inside = (v < n) & (m < n)  # [B_g, n_g, n_g]
        pair.append(torch.where(inside, first + v * n + m, 0).flatten())
        swapped.append(torch.where(inside, first + m * n + v, 0).flatten())
        insides.append(inside.flatten())
        padding = group.padding(pairs.value.dtype)
        zeros = pairs.value.new_zeros(inside.shape)
        added.append((zeros if padding is None else zeros + padding.squeeze(1)).flatten())
    there, back, inside = torch.cat(pair), torch.cat(swapped), torch.cat(insides)
    ways_back = None
    if pairs.value.size(0) == row.numel():  # every pair has a row of its own
        dense = inside.nonzero().squeeze(1)
        ways_back = tuple(
            torch.empty_like(row).index_copy_(0, row[way[dense]], dense) for way in (there, back)
        )
    return _Places(row[there], row[back], torch.cat(added), ways_back)


class _Gather(torch.autograd.Function):
    """Values [2 C, R] to [C, D]: a dense pair has the sum of its two rows, and what is added at padding."""

    @staticmethod
    def forward(ctx, value, places):  # type: ignore[no-untyped-def] # torch's signature
        ctx.places, ctx.shape = places, value.shape
        there, back = value.chunk(2)
        return there.index_select(1, places.there).add_(back.index_select(1, places.back)).add_(places.added)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        """Padding has no gradient: it is never looked at."""
        if ctx.places.ways_back is not None:
            return torch.cat([grad.index_select(1, way) for way in ctx.places.ways_back]), None
        rows = grad.t().contiguous()
        sums = [rows.new_zeros(ctx.shape[1], rows.size(1)) for _ in range(2)]
        for total, way in zip(sums, (ctx.places.there, ctx.places.back), strict=True):
            total.index_add_(0, way, rows)
        return torch.cat(sums, dim=1).t(), None


class PairBias:
    """The bias of one layer."""

    def __init__(self, biases: PairBiases, layer: int) -> None:
        self._biases, self._layer = biases, layer

    def of_groups(self, groups: Sequence[Group]) -> list[Tensor]:
        """For each group [B_g, H, n_g, n_g] by (graph, head, query, key), -inf at padded keys."""
        return [layers[self._layer] for layers in self._biases.of_groups(groups)]


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
        biases = PairBiases(self.weight.t() @ pairs.value.t(), pairs, self.layers)
        made = [PairBias(biases, layer) for layer in range(self.layers)]
        return made if self.layers > 1 else made[0]

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{self.dim}, heads={self.heads}, layers={self.layers}"
