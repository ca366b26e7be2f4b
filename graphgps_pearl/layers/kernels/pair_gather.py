"""The gather of pair values with a backward pass that never scatters over columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from graphgps_pearl.layers.pair_bias import PairIndex


def gather(value: Tensor, index: PairIndex) -> Tensor:
    """:func:`graphgps_pearl.layers.pair_bias.gather`."""
    return _Gather.apply(value, index)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value, index):  # type: ignore[no-untyped-def] # torch's signature
        ctx.index, ctx.shape = index, value.shape
        forward, reverse = value.chunk(2)
        return (
            forward.index_select(1, index.row)
            .add_(reverse.index_select(1, index.reverse_row))
            .add_(index.padding)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        index = ctx.index
        if index.inverse is not None:  # padding is in no inverse: it has no gradient
            return torch.cat([grad.index_select(1, inverse) for inverse in index.inverse]), None
        rows = grad.t().contiguous()
        sums = [rows.new_zeros(ctx.shape[1], rows.size(1)) for _ in range(2)]
        for total, row in zip(sums, (index.row, index.reverse_row), strict=True):
            total.index_add_(0, row, rows)
        return torch.cat(sums, dim=1).t(), None
