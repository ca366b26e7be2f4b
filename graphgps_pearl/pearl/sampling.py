r"""Samples: zero-mean, unit-variance signals, each a function of (key, position, sample) and of nothing else.

==============  ==================================================  =========  ==========  =================
law             values                                              E q^2      E q^3       E q^4
==============  ==================================================  =========  ==========  =================
``gaussian``    standard normal                                     1          0           3
``rademacher``  +1 or -1, evenly                                    1          0           1
``two_point``   :math:`\varphi` or :math:`-1/\varphi`               1          1           2
``sobol``       standard normal, spread evenly over the samples     1          0           3
==============  ==================================================  =========  ==========  =================

(:math:`\varphi` the golden ratio, drawn with probability :math:`1 / (1 + \varphi^2)`.) No law has E q = 0 and
E q^p = 1 for every p >= 2, as the paper assumes: E q^2 = E q^4 = 1 forces q = +-1, whose third moment is 0.

The numbers come from a counter (SplitMix64 of key, position and sample number): any part of the infinite
table can be computed by itself. Chunks, batches and larger graphs see the same numbers, and no random state
moves.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphgps_pearl.pearl.names import check_name

LAWS = ("gaussian", "rademacher", "two_point", "sobol")

_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2


def draw_samples(
    law: str, key: Tensor, position: Tensor, start: int, stop: int, dtype: torch.dtype | None = None
) -> Tensor:
    """Samples ``start`` to ``stop`` of the signals at the given positions, :obj:`[N, stop - start]`.

    Args:
        law: one of :data:`LAWS`.
        key: which table to read, an integer for all nodes or one for each, :obj:`[]` or :obj:`[N]`.
        position: each node's position in its own graph, :obj:`[N]`.
        start: first sample.
        stop: last sample, exclusive.
        dtype: of the result.

    >>> table = draw_samples("gaussian", torch.tensor(0), torch.arange(5), 0, 8)
    >>> part = draw_samples("gaussian", torch.tensor(0), torch.tensor([3]), 2, 4)
    >>> torch.equal(part, table[3:4, 2:4])
    True
    """
    check_name("law", law, LAWS)
    dtype = dtype or torch.get_default_dtype()
    bits = _random_bits(key, position, torch.arange(start, stop, device=position.device))
    if law == "rademacher":
        return torch.where(bits < 0, -1.0, 1.0).to(dtype)
    uniform = _uniform(bits)
    if law == "two_point":
        likely = 1 / (1 + _GOLDEN_RATIO**2)
        return torch.where(uniform < likely, _GOLDEN_RATIO, -1 / _GOLDEN_RATIO).to(dtype)
    return torch.special.ndtri(uniform).to(dtype)


def make_key(*parts: int | Tensor) -> Tensor:
    """One key out of several integers (a seed, a table number, a graph's number)."""
    key = torch.zeros((), dtype=torch.int64)
    for part in parts:
        key = _mix(_mix(key + _INCREMENT) ^ torch.as_tensor(part, dtype=torch.int64))
    return key


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


_INCREMENT = _signed(0x9E3779B97F4A7C15)
_FACTORS = (_signed(0xBF58476D1CE4E5B9), _signed(0x94D049BB133111EB))


def _random_bits(key: Tensor, position: Tensor, sample: Tensor) -> Tensor:
    """64 random bits for every (position, sample), :obj:`[N, M]`."""
    stream = _mix(_mix(key) + (position + 1) * _INCREMENT)
    return _mix(stream.unsqueeze(-1) + _mix((sample + 1) * _INCREMENT))


def _mix(x: Tensor) -> Tensor:
    """SplitMix64's finaliser; int64 arithmetic wraps, which is what it wants."""
    x = (x ^ _shift_right(x, 30)) * _FACTORS[0]
    x = (x ^ _shift_right(x, 27)) * _FACTORS[1]
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _uniform(bits: Tensor) -> Tensor:
    """The upper 52 bits as a float64 strictly between 0 and 1."""
    return (_shift_right(bits, 12).double() + 0.5) * 2.0**-52
