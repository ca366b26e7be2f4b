"""Dropout from few random numbers: one 64-bit draw of torch's generator decides four entries.

The probability is then a multiple of 2^-16; entries that stay are divided by exactly the share that stays.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

_STEPS = 1 << 16

masked_scale = torch.ops.aten.native_dropout_backward  # (x, mask, factor): factor * mask * x in one pass


def draw(shape: torch.Size, probability: float, device: torch.device) -> tuple[Tensor, int, float]:
    """16 random bits for every entry, the number below which an entry is dropped, the share that stays."""
    dropped = min(max(round(probability * _STEPS), 1), _STEPS - 1)
    count = math.prod(shape)
    bits = torch.empty((count + 3) // 4, dtype=torch.int64, device=device).random_(-(2**63), None)
    return bits.view(torch.int16)[:count].view(shape), dropped - _STEPS // 2, 1 - dropped / _STEPS


def dropout(x: Tensor, probability: float) -> Tensor:
    """``torch.nn.functional.dropout`` for 0 < ``probability`` < 1, with other random numbers."""
    bits, limit, share = draw(x.shape, probability, x.device)
    return masked_scale(x, bits >= limit, 1 / share)
