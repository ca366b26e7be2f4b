r"""Softmax attention with dropout on its weights, group by group, with as little kept and drawn as it takes.

PyTorch's attention with dropout keeps three matrices of scores for the backward pass on the CPU and draws a
number for every score. Here one matrix is kept, the softmax with the sign of each entry saying whether it
stays (a softmax is never negative), and one 64-bit draw of torch's generator decides four scores. The
probability is therefore a multiple of 2^-16; weights that stay are divided by exactly the share that stays.

Nodes go to their groups, head by head, in one gather, and so they come back: in the backward pass too, where
nothing is summed because padding has no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgps_pearl.layers.grouping import Grouping

_STEPS = 1 << 16

relu_gradient = torch.ops.aten.threshold_backward


def attend(
    qkv: Tensor, heads: int, grouping: Grouping, added: Sequence[Tensor | None], dropout: float
) -> Tensor:
    """softmax(Q Kᵀ / sqrt(d) + added) V inside each graph, with dropout on the softmax, [N, F].

    Args:
        qkv: [N, 3 F], packed nodes.
        heads: H; d is F / H.
        grouping: of the graphs.
        added: for each group, broadcastable to its scores [B_g, H, n_g, n_g], -inf where a key is padding.
        dropout: probability with which a weight is dropped.
    """
    if not grouping.groups:
        return qkv.new_empty(0, qkv.size(1) // 3)
    if dropout > 0.0:
        return _Attention.apply(qkv, heads, grouping, dropout, *added)
    out = []
    for parts, own in zip(_to_heads(qkv, grouping, 3, heads), added, strict=True):
        query, key, value = parts.unflatten(1, (-1, heads))
        out.append(F.scaled_dot_product_attention(query, key, value, attn_mask=own).flatten(0, 2))
    return _from_heads(torch.cat(out), grouping, 1, heads)


def draw_signs(shape: torch.Size, dropout: float, device: torch.device) -> tuple[Tensor, float]:
    """Numbers in float32, negative where an entry is dropped, and what share stays on average."""
    dropped = min(max(round(dropout * _STEPS), 1), _STEPS - 1)
    count = math.prod(shape)
    words = torch.empty((count + 3) // 4, dtype=torch.int64, device=device).random_(-(2**63), None)
    signs = words.view(torch.int16)[:count].to(torch.float32).sub_(dropped - _STEPS // 2 - 0.5)
    return signs.view(shape), 1 - dropped / _STEPS


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv, heads, grouping, dropout, *added):  # type: ignore[no-untyped-def] # torch's signature
        scale = (qkv.size(1) // (3 * heads)) ** -0.5
        saved: list[Tensor] = []
        with torch.autocast(qkv.device.type, enabled=False):  # one precision, here and in the backward pass
            rows = qkv.new_empty(heads * grouping.num_rows, qkv.size(1) // (3 * heads))
            out, parts = _views(rows, grouping, 1, heads), _to_heads(qkv, grouping, 3, heads)
            for group, own, (query, key, value), to in zip(grouping.groups, added, parts, out, strict=True):
                scores = _times(query, key.transpose(1, 2), scale)
                if own is not None:
                    scores.view(-1, heads, group.size, group.size).add_(own)
                signs, share = draw_signs(scores.shape, dropout, scores.device)
                weights = torch.copysign(scores.softmax(-1), signs.to(scores.dtype))
                _times(weights.relu(), value, 1 / share, out=to[0])
                saved += [query, key, value, weights]
            ctx.save_for_backward(*saved)
            ctx.heads, ctx.grouping, ctx.scale, ctx.share = heads, grouping, scale, share
            ctx.added = [None if own is None else own.shape for own in added]
            return _from_heads(rows, grouping, 1, heads)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError("attention with dropout has no second derivatives; gt.attn_dropout 0 has")
        heads, grouping = ctx.heads, ctx.grouping
        grad_added: list[Tensor | None] = []
        rows = grad.new_empty(3 * heads * grouping.num_rows, grad.size(1) // heads)
        out, grads = _views(rows, grouping, 3, heads), _to_heads(grad, grouping, 1, heads, fill=True)
        for number, (group, (g,), to) in enumerate(zip(grouping.groups, grads, out, strict=True)):
            query, key, value, signed = ctx.saved_tensors[4 * number : 4 * number + 4]
            _times(signed.relu().transpose(1, 2), g, 1 / ctx.share, out=to[2])
            grad_weights = relu_gradient(_times(g, value.transpose(1, 2), 1 / ctx.share), signed, 0)
            scores = torch._softmax_backward_data(grad_weights, signed.abs(), -1, signed.dtype)
            _times(scores, key, ctx.scale, out=to[0])
            _times(scores.transpose(1, 2), query, ctx.scale, out=to[1])
            wanted = ctx.needs_input_grad[4 + number]
            scores = scores.view(-1, heads, group.size, group.size)
            grad_added.append(scores.sum_to_size(ctx.added[number]) if wanted else None)
        return _from_heads(rows, grouping, 3, heads), None, None, None, *grad_added


def _times(a: Tensor, b: Tensor, factor: float, out: Tensor | None = None) -> Tensor:
    """``factor * a @ b`` for stacks of matrices, in one pass."""
    nothing = a.new_empty(1, 1, 1)
    if out is None:
        return torch.baddbmm(nothing, a, b, beta=0, alpha=factor)
    return torch.baddbmm(nothing, a, b, beta=0, alpha=factor, out=out)


def _to_heads(x: Tensor, grouping: Grouping, count: int, heads: int, fill: bool = False) -> list[Tensor]:
    """Packed [N, count·F] to [count, B_g·H, n_g, d] for each group; padding is the first node's, or zero."""
    rows = x.reshape(x.size(0) * count * heads, -1)
    if fill:
        rows = torch.cat([rows, rows.new_zeros(1, rows.size(1))])
    return _views(rows.index_select(0, grouping.to_heads(count, heads, fill)), grouping, count, heads)


def _from_heads(rows: Tensor, grouping: Grouping, count: int, heads: int) -> Tensor:
    """The rows [·, d] of all groups, as :func:`_to_heads` has them, to packed [N, count·F]."""
    packed = rows.index_select(0, grouping.from_heads(count, heads))
    return packed.view(grouping.place.numel(), -1)


def _views(rows: Tensor, grouping: Grouping, count: int, heads: int) -> list[Tensor]:
    sizes = [count * heads * group.source.numel() for group in grouping.groups]
    parts = zip(grouping.groups, rows.split(sizes), strict=True)
    return [part.view(count, -1, group.size, rows.size(1)) for group, part in parts]
