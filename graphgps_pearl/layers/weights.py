r"""Softmax attention with dropout on its weights, with as little kept and drawn as it takes.

PyTorch's attention with dropout keeps three matrices of scores for the backward pass on the CPU and draws a
number for every score. Here the softmax and a byte for each score are kept, and one 64-bit draw of torch's
generator decides four scores. The probability is therefore a multiple of 2^-16; weights that stay are divided
by exactly the share that stays.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

_STEPS = 1 << 16


def attend(query: Tensor, key: Tensor, value: Tensor, added: Tensor | None, dropout: float) -> Tensor:
    """softmax(Q Kᵀ / sqrt(d) + added) V, with dropout on the softmax.

    Args:
        query, key, value: [B, H, n, d].
        added: broadcastable to the scores [B, H, n, n], -inf where a key does not count.
        dropout: probability with which a weight is dropped.
    """
    if dropout == 0.0:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=added)
    return _Attention.apply(query, key, value, added, dropout)


def draw_kept(shape: torch.Size, dropout: float, device: torch.device) -> tuple[Tensor, float]:
    """Which entries stay (bool), and what share of them does on average."""
    dropped = min(max(round(dropout * _STEPS), 1), _STEPS - 1)
    count = math.prod(shape)
    words = torch.empty((count + 3) // 4, dtype=torch.int64, device=device).random_(-(2**63), None)
    kept = words.view(torch.int16)[:count] >= dropped - _STEPS // 2
    return kept.view(shape), 1 - dropped / _STEPS


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, added, dropout):  # type: ignore[no-untyped-def] # torch's signature
        scale = 1 / math.sqrt(query.size(-1))
        with torch.autocast(query.device.type, enabled=False):  # one precision, here and in the backward pass
            weights = (query * scale) @ key.transpose(-2, -1)
            if added is not None:
                weights += added
            weights = weights.softmax(-1)
            kept, share = draw_kept(weights.shape, dropout, weights.device)
            ctx.save_for_backward(query, key, value, weights, kept)
            ctx.scale, ctx.share, ctx.added = scale, share, None if added is None else added.shape
            return (weights * kept) @ (value / share)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        query, key, value, weights, kept = ctx.saved_tensors
        grad = grad / ctx.share
        grad_value = (weights * kept).transpose(-2, -1) @ grad
        grad_scores = (grad @ value.transpose(-2, -1)).mul_(kept)
        grad_scores -= (grad_scores * weights).sum(-1, keepdim=True)
        grad_scores *= weights
        grad_query = (grad_scores @ key).mul_(ctx.scale)
        grad_key = (grad_scores.transpose(-2, -1) @ query).mul_(ctx.scale)
        grad_added = grad_scores.sum_to_size(ctx.added) if ctx.needs_input_grad[3] else None
        return grad_query, grad_key, grad_value, grad_added, None
