r"""Random numbers from a counter: a function of (key, position, sample), with no state to keep or to move.

SplitMix64's finaliser is applied to the words one after the other. Any part of the infinite table of numbers
can be computed by itself, on any device, so chunks, batches and larger graphs see the same numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


_INCREMENT = _signed(0x9E3779B97F4A7C15)
_FACTORS = (_signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB))


def make_key(*parts: int | Tensor) -> Tensor:
    """One key out of several integers (a seed, a table number, a graph's number)."""
    key = torch.zeros((), dtype=torch.int64)
    for part in parts:
        key = mix(mix(key + _INCREMENT) ^ torch.as_tensor(part, dtype=torch.int64))
    return key


def random_bits(key: Tensor, position: Tensor, sample: Tensor) -> Tensor:
    """64 random bits for every (position, sample), :obj:`[N, M]`."""
    stream = mix(mix(key) + (position + 1) * _INCREMENT)
    return mix(stream.unsqueeze(-1) + mix((sample + 1) * _INCREMENT))


def mix(x: Tensor) -> Tensor:
    """SplitMix64's finaliser; int64 arithmetic wraps, which is what it wants."""
    x = (x ^ _shift_right(x, 30)) * _FACTORS[0]
    x = (x ^ _shift_right(x, 27)) * _FACTORS[1]
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def uniform(bits: Tensor) -> Tensor:
    """The upper 52 bits as a float64 strictly between 0 and 1."""
    return (_shift_right(bits, 12).double() + 0.5) * 2.0**-52
