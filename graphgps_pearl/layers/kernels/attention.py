r"""Softmax attention with dropout that keeps one matrix of scores for the backward pass.

PyTorch's attention with dropout keeps three matrices of scores on the CPU and draws a random number for every
score. This kernel keeps one: the softmax, where the sign of an entry says whether the entry is dropped (a
softmax is never negative). Random bits are drawn as in :mod:`~graphgps_pearl.layers.kernels.dropout`.

A packed row [count·F] holds count·H pieces, one for each part (query, key, value) and head. One gather index
brings the pieces of all nodes to their groups in the order (part, graph, head, node), and its inverse brings
them back. The backward pass uses the same two. It needs no sums, because padding has no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from graphgps_pearl.layers.grouping import Grouping
from graphgps_pearl.layers.kernels import compiled
from graphgps_pearl.layers.kernels.compiled import SECOND_DERIVATIVES
from graphgps_pearl.layers.kernels.dropout import draw_signs
from graphgps_pearl.pearl.norm import first_derivatives_only

relu_backward = torch.ops.aten.threshold_backward


def attend(
    qkv: Tensor, heads: int, grouping: Grouping, bias: Sequence[Tensor | None], dropout: float
) -> Tensor:
    """:func:`graphgps_pearl.layers.attention.attend` for ``dropout`` > 0; no second derivatives."""
    if not grouping.groups:
        return qkv.new_empty(0, qkv.size(1) // 3)
    if compiled.serves(qkv, heads, grouping, bias):
        return compiled.attend(qkv, heads, grouping, bias, dropout)
    return _Attention.apply(qkv, heads, grouping, dropout, *bias)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv, heads, grouping, dropout, *bias):  # type: ignore[no-untyped-def] # torch's signature
        scale = (qkv.size(1) // (3 * heads)) ** -0.5
        saved: list[Tensor] = []
        with torch.autocast(qkv.device.type, enabled=False):  # one precision, here and in the backward pass
            rows = qkv.new_empty(heads * grouping.num_rows, qkv.size(1) // (3 * heads))
            out, parts = _views(rows, grouping, 1, heads), _to_heads(qkv, grouping, 3, heads)
            for group, added, (query, key, value), to in zip(grouping.groups, bias, parts, out, strict=True):
                scores = _times(query, key.transpose(1, 2), scale)
                if added is not None:
                    scores.view(-1, heads, group.size, group.size).add_(added)
                signs, share = draw_signs(scores.shape, dropout, scores.device)
                weights = torch.copysign(scores.softmax(-1), signs.to(scores.dtype))
                _times(weights.relu(), value, 1 / share, out=to[0])
                saved += [query, key, value, weights]
            ctx.save_for_backward(*saved)
            ctx.heads, ctx.grouping, ctx.scale, ctx.share = heads, grouping, scale, share
            ctx.bias_shapes = [None if added is None else added.shape for added in bias]
            return _from_heads(rows, grouping, 1, heads)

    @staticmethod
    @first_derivatives_only(SECOND_DERIVATIVES)
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        heads, grouping = ctx.heads, ctx.grouping
        grad_bias: list[Tensor | None] = []
        rows = grad.new_empty(3 * heads * grouping.num_rows, grad.size(1) // heads)
        out, grads = _views(rows, grouping, 3, heads), _to_heads(grad, grouping, 1, heads, zeros=True)
        for number, (group, (g,), to) in enumerate(zip(grouping.groups, grads, out, strict=True)):
            query, key, value, signed = ctx.saved_tensors[4 * number : 4 * number + 4]
            _times(signed.relu().transpose(1, 2), g, 1 / ctx.share, out=to[2])
            grad_weights = relu_backward(_times(g, value.transpose(1, 2), 1 / ctx.share), signed, 0)
            scores = torch._softmax_backward_data(grad_weights, signed.abs(), -1, signed.dtype)
            _times(scores, key, ctx.scale, out=to[0])
            _times(scores.transpose(1, 2), query, ctx.scale, out=to[1])
            wanted = ctx.needs_input_grad[4 + number]
            scores = scores.view(-1, heads, group.size, group.size)
            grad_bias.append(scores.sum_to_size(ctx.bias_shapes[number]) if wanted else None)
        return _from_heads(rows, grouping, 3, heads), None, None, None, *grad_bias


def _times(a: Tensor, b: Tensor, factor: float, out: Tensor | None = None) -> Tensor:
    """``factor * a @ b`` for stacks of matrices, in one pass."""
    nothing = a.new_empty(1, 1, 1)
    if out is None:
        return torch.baddbmm(nothing, a, b, beta=0, alpha=factor)
    return torch.baddbmm(nothing, a, b, beta=0, alpha=factor, out=out)


def _to_heads(x: Tensor, grouping: Grouping, count: int, heads: int, zeros: bool = False) -> list[Tensor]:
    """Packed [N, count·F] to [count, B_g·H, n_g, d] for each group; padding is the first node's, or zero."""
    pieces = x.reshape(x.size(0) * count * heads, -1)
    if zeros:
        pieces = torch.cat([pieces, pieces.new_zeros(1, pieces.size(1))])
    return _views(pieces.index_select(0, gather_index(grouping, count, heads, zeros)), grouping, count, heads)


def _from_heads(pieces: Tensor, grouping: Grouping, count: int, heads: int) -> Tensor:
    """The pieces [·, d] of all groups, in the order of :func:`_to_heads`, to packed [N, count·F]."""
    packed = pieces.index_select(0, inverse_index(grouping, count, heads))
    return packed.view(grouping.num_nodes, -1)


def _views(pieces: Tensor, grouping: Grouping, count: int, heads: int) -> list[Tensor]:
    sizes = [count * heads * group.nodes.numel() for group in grouping.groups]
    parts = zip(grouping.groups, pieces.split(sizes), strict=True)
    return [part.view(count, -1, group.size, pieces.size(1)) for group, part in parts]


def gather_index(grouping: Grouping, count: int, heads: int, zeros: bool) -> Tensor:
    """For the pieces of all groups, in the order (part, graph, head, node): which packed piece each is.

    Padding repeats the graph's first node, or with ``zeros`` is the piece after all others.
    """

    def compute() -> Tensor:
        pieces, found = count * heads, []
        piece = torch.arange(pieces, device=grouping.dense_row.device).view(count, 1, heads, 1)
        for group in grouping.groups:
            index = group.nodes.view(1, -1, 1, group.size) * pieces + piece
            if zeros and group.mask is not None:
                index = index.masked_fill(~group.mask.view(1, -1, 1, group.size), pieces * grouping.num_nodes)
            found.append(index.flatten())
        return torch.cat(found)

    return grouping.cached(("gather", count, heads, zeros), compute)


def inverse_index(grouping: Grouping, count: int, heads: int) -> Tensor:
    """For the pieces of packed rows: where each is among those of all groups."""

    def compute() -> Tensor:
        gather = gather_index(grouping, count, heads, True)
        inverse = torch.empty(count * heads * grouping.num_nodes + 1, dtype=torch.long, device=gather.device)
        inverse[gather] = torch.arange(gather.numel(), device=gather.device)
        return inverse[:-1]

    return grouping.cached(("inverse", count, heads), compute)
