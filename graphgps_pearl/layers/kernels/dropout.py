"""Dropout from 16 random bits an entry: one 64-bit draw of torch's generator decides four entries.

torch draws a number for every entry, which takes eight times as long on a CPU. The probability is a multiple
of 2^-16; entries that stay are divided by exactly the share that stays.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

STEPS = 1 << 16
_SPARE = 4  # words: the longest vector has 16 entries


def dropout(x: Tensor, p: float) -> Tensor:
    """``torch.nn.functional.dropout(x, p)`` for p > 0."""
    return _Dropout.apply(x, p)


def draw_signs(shape: torch.Size, dropout: float, device: torch.device) -> tuple[Tensor, float]:
    """Numbers in float32, negative where an entry is dropped, and what share stays on average."""
    bits, dropped = draw(shape, dropout, device)
    return _signs(bits, dropped), 1 - dropped / STEPS


def draw(shape: torch.Size, dropout: float, device: torch.device) -> tuple[Tensor, int]:
    """16 random bits an entry, as integers, and how many of the 2^16 values, from the least, drop it.

    There is memory behind the last entry: compiled kernels read whole vectors.
    """
    dropped = min(max(round(dropout * STEPS), 1), STEPS - 1)
    count = math.prod(shape)
    words = (count + 3) // 4
    bits = torch.empty(words + _SPARE, dtype=torch.int64, device=device)
    bits[:words].random_(-(2**63), None)
    return bits.view(torch.int16)[:count].view(shape), dropped


def _signs(bits: Tensor, dropped: int) -> Tensor:
    return bits.to(torch.float32).sub_(dropped - STEPS // 2 - 0.5)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):  # type: ignore[no-untyped-def] # torch's signature
        bits, ctx.dropped = draw(x.shape, p, x.device)
        ctx.save_for_backward(bits)
        return _scaled(x, bits, ctx.dropped)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        (bits,) = ctx.saved_tensors
        return _scaled(grad, bits, ctx.dropped), None


def _scaled(x: Tensor, bits: Tensor, dropped: int) -> Tensor:
    """The entries that stay, divided by their share; linear in x, so it is its own backward pass."""
    kept = torch.ops.aten.threshold_backward(x, _signs(bits, dropped).to(x.dtype), 0)
    return kept * (STEPS / (STEPS - dropped))
