r"""Random signals: zero mean, unit variance, each a function of (key, position, sample) and of nothing else.

================  ==================================================  =========  ==========  =================
distribution      values                                              E q^2      E q^3       E q^4
================  ==================================================  =========  ==========  =================
``gaussian``      standard normal                                     1          0           3
``rademacher``    +1 or -1 with equal probability                     1          0           1
``two_point``     :math:`\varphi` or :math:`-1/\varphi`               1          1           2
``sobol``         standard normal, spread evenly over the samples     1          0           3
================  ==================================================  =========  ==========  =================

(:math:`\varphi` the golden ratio, drawn with probability :math:`1 / (1 + \varphi^2)`.) No distribution has E
q = 0 and E q^p = 1 for every p >= 2, as the paper assumes: E q^2 = E q^4 = 1 forces q = +-1, whose third
moment is 0.

The numbers come from a counter-based generator, SplitMix64's finaliser applied to key, position and sample.
Any part of the infinite table of numbers can be computed alone, on any device: chunks, batches and larger
graphs see the same numbers, and no random state changes.
"""

from __future__ import annotations

import math
from functools import cache

import torch
from torch import Tensor

from graphgps_pearl.pearl.checks import check_name
from graphgps_pearl.vocabulary import DISTRIBUTIONS

_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2


def draw_samples(
    distribution: str,
    key: Tensor,
    position: Tensor,
    start: int,
    stop: int,
    dtype: torch.dtype | None = None,
    num_samples: int | None = None,
) -> Tensor:
    """Samples ``start`` to ``stop`` of the signals at the given positions, :obj:`[N, stop - start]`.

    Args:
        distribution: one of :data:`DISTRIBUTIONS`.
        key: which table to read, an integer for all nodes or one for each, :obj:`[]` or :obj:`[N]`.
        position: each node's position in its own graph, :obj:`[N]`.
        start: first sample.
        stop: last sample, exclusive.
        dtype: of the result.
        num_samples: how many samples there are in all; ``stop`` unless given. ``sobol`` spreads them evenly.

    >>> table = draw_samples("gaussian", torch.tensor(0), torch.arange(5), 0, 8)
    >>> part = draw_samples("gaussian", torch.tensor(0), torch.tensor([3]), 2, 4)
    >>> torch.equal(part, table[3:4, 2:4])
    True
    """
    check_name("distribution", distribution, DISTRIBUTIONS)
    dtype = dtype or torch.get_default_dtype()
    sample = torch.arange(start, stop, device=position.device)
    if distribution == "sobol":
        return torch.special.ndtri(sobol_points(key, position, sample, num_samples or stop)).to(dtype)
    bits = random_bits(key, position, sample)
    if distribution == "rademacher":
        return torch.where(bits < 0, -1.0, 1.0).to(dtype)
    if distribution == "two_point":
        likely = 1 / (1 + _GOLDEN_RATIO**2)
        return torch.where(uniform(bits) < likely, _GOLDEN_RATIO, -1 / _GOLDEN_RATIO).to(dtype)
    return torch.special.ndtri(uniform(bits)).to(dtype)


# counter-based random numbers


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
    """SplitMix64's finaliser; int64 arithmetic wraps, as it should."""
    x = (x ^ _shift_right(x, 30)) * _FACTORS[0]
    x = (x ^ _shift_right(x, 27)) * _FACTORS[1]
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def uniform(bits: Tensor) -> Tensor:
    """The upper 52 bits as a float64 strictly between 0 and 1."""
    return (_shift_right(bits, 12).double() + 0.5) * 2.0**-52


# Scrambled Sobol points for any number of nodes: Latin supercube sampling in blocks of eight columns.
#
# A Sobol sequence of n dimensions would be a different one for every n, is not defined beyond 21,201
# dimensions, and in high dimensions is hardly better than independent points. So positions are taken in
# blocks of eight, and every block has an eight-dimensional Sobol sequence (Owen, "Latin supercube sampling
# for very high-dimensional simulations", 1998). Inside a block the columns are assigned to the positions at
# random, and each is scrambled separately (nested uniform scrambling by a hash: Laine and Karras 2011, Burley
# 2020). The samples of every block are shuffled, so that blocks are independent. Every column alone is
# uniform.

BLOCK = 8  # measured: smaller or equal error than 4, 16, 32, 64 and than one sequence for all nodes
_BITS = 30  # of torch's direction numbers
_MASK = (1 << _BITS) - 1


def sobol_points(key: Tensor, position: Tensor, sample: Tensor, num_samples: int) -> Tensor:
    """Points strictly between 0 and 1 for every (position, sample), float64 :obj:`[N, len(sample)]`.

    ``sample`` is part of ``range(num_samples)``, all of which together are spread evenly.
    """
    block_key = mix(mix(key) ^ (position // BLOCK + 1))  # [N]
    column = _assign_columns(block_key, position % BLOCK)
    index = _shuffle(sample.expand(position.numel(), -1), num_samples, mix(block_key + 1).unsqueeze(1))
    bits = max((num_samples - 1).bit_length(), 1)
    point = _scramble(_sobol(index, column, bits), mix(block_key + 2 + column).unsqueeze(1))
    return (point + uniform(random_bits(block_key, column, sample))) * 2.0**-_BITS


def _assign_columns(block_key: Tensor, slot: Tensor) -> Tensor:
    """A random column for each slot of a block: the rank of its random number, :obj:`[N]`."""
    slots = torch.arange(BLOCK, device=slot.device)
    numbers = random_bits(block_key, torch.zeros_like(slot), slots)  # [N, BLOCK]
    return (numbers < numbers.gather(1, slot.unsqueeze(1))).sum(1)


def _sobol(index: Tensor, column: Tensor, bits: int = _BITS) -> Tensor:
    """The Sobol sequence as 30-bit integers: the direction numbers of the index's bits, by exclusive or.

    ``bits``: how many the largest index has.
    """
    direction = _directions().to(index.device)[column]  # [N, 30]
    point = torch.zeros_like(index)
    for bit in range(bits):
        point ^= ((index >> bit) & 1) * direction[:, bit : bit + 1]
    return point


@cache
def _directions() -> Tensor:
    return torch.quasirandom.SobolEngine(BLOCK, scramble=False).sobolstate.clone()


def _shuffle(x: Tensor, size: int, key: Tensor) -> Tensor:
    """A random permutation of ``range(size)``, applied to ``x``: one of a power of two, until inside."""
    bits = max((size - 1).bit_length(), 1)
    x = _permute_bits(x, bits, key)
    while bool((outside := x >= size).any()):
        x = torch.where(outside, _permute_bits(x, bits, key), x)
    return x


def _permute_bits(x: Tensor, bits: int, key: Tensor) -> Tensor:
    """A random permutation of the integers of so many bits: steps that can each be undone."""
    for step in range(4):
        word = mix(key + step)
        x = (x * (word | 1) + (word >> 32)) & ((1 << bits) - 1)
        x = x ^ (x >> (bits + 1) // 2)
    return x


def _scramble(x: Tensor, seed: Tensor) -> Tensor:
    """Nested uniform scrambling of 30-bit integers: each bit is flipped or not, by all the bits above it."""
    return _reverse(_upward_hash(_reverse(x), seed))


def _upward_hash(x: Tensor, seed: Tensor) -> Tensor:
    """A hash in which every bit depends on those below it only (the constants are Vegdahl's)."""
    x = x ^ (x * 0x3D20ADEA) & _MASK
    x = (x + seed) & _MASK
    x = (x * ((seed >> _BITS) | 1)) & _MASK
    x = x ^ (x * 0x05526C56) & _MASK
    return x ^ (x * 0x53A22864) & _MASK


def _reverse(x: Tensor) -> Tensor:
    """The lowest 30 bits in reverse order."""
    for width, mask in _HALVES:
        x = ((x >> width) & mask) | ((x & mask) << width)
    return x >> (32 - _BITS)


_HALVES = ((16, 0x0000FFFF), (8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555))
