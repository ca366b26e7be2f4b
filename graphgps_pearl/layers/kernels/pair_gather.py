"""The projection of pairs to attention biases, with a backward pass that gathers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from graphgps_pearl.layers.kernels import compiled_pairs
from graphgps_pearl.pearl.norm import first_derivatives_only

if TYPE_CHECKING:
    from graphgps_pearl.layers.pair_bias import PairIndex


def project(
    rows: Tensor, weight: Tensor, constant: Tensor | None, index: PairIndex, masked: bool = True
) -> Tensor:
    """:func:`graphgps_pearl.layers.pair_bias.project`."""
    kind = rows.device.type
    if compiled_pairs.serves(rows, weight):
        return compiled_pairs.project(rows, weight, constant, index, layers=1, masked=masked)[0]
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        rows, weight = rows.to(dtype), weight.to(dtype)
        constant = None if constant is None else constant.to(dtype)
    with torch.autocast(kind, enabled=False):
        return _Project.apply(rows, weight, constant, index, masked)


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, constant, index, masked):  # type: ignore[no-untyped-def] # torch's signature
        both = rows.index_select(0, index.row).view(-1, weight.size(0))  # [D, 2 F]
        ctx.save_for_backward(both, weight)
        ctx.index, ctx.shape = index, rows.shape
        added = rows.new_zeros(()) if constant is None else constant.unsqueeze(1)
        if masked:
            added = added + index.padding.to(rows.dtype)
        return torch.addmm(added, weight.t(), both.t())

    @staticmethod
    @first_derivatives_only(compiled_pairs.SECOND_DERIVATIVES)
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        both, weight = ctx.saved_tensors
        index, grad_rows = ctx.index, None
        if ctx.needs_input_grad[0]:
            grad_both = (grad.t() @ weight.t()).view(-1, ctx.shape[1])  # [2 D, F]
            if index.inverse is None:
                grad_rows = grad_both.new_zeros(ctx.shape).index_add_(0, index.row, grad_both)
            else:  # padding is in no inverse: it has no gradient
                first, second = (grad_both.index_select(0, inverse) for inverse in index.inverse)
                grad_rows = first.add_(second)
        grad_constant = grad.sum(1) if ctx.needs_input_grad[2] else None
        return grad_rows, (grad @ both).t(), grad_constant, None, None
