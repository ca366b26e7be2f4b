r"""Scrambled Sobol points for any number of nodes: Latin supercube sampling in blocks of eight columns.

A Sobol sequence of :math:`n` dimensions would be another one for every :math:`n`, is not defined beyond
21,201, and in high dimensions is hardly better than independent points. So positions are taken in blocks of
eight, and every block has an eight-dimensional Sobol sequence of its own (Owen, "Latin supercube sampling for
very high-dimensional simulations", 1998):

- inside a block the columns are assigned to the positions at random, and each is scrambled by itself (nested
  uniform scrambling by a hash: Laine and Karras 2011, Burley 2020);
- the samples of every block are shuffled, so that blocks are independent of each other.

Every column by itself is uniform, and all of it is a function of (key, position, sample).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from graphgps_pearl.pearl.counter import mix, random_bits, uniform

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
    point = _scramble(_sobol(index, column), mix(block_key + 2 + column).unsqueeze(1))
    return (point + uniform(random_bits(block_key, column, sample))) * 2.0**-_BITS


def _assign_columns(block_key: Tensor, place: Tensor) -> Tensor:
    """A random column for each place in a block: the rank of its random number, :obj:`[N]`."""
    places = torch.arange(BLOCK, device=place.device)
    numbers = random_bits(block_key, torch.zeros_like(place), places)  # [N, BLOCK]
    return (numbers < numbers.gather(1, place.unsqueeze(1))).sum(1)


def _sobol(index: Tensor, column: Tensor) -> Tensor:
    """The Sobol sequence as 30-bit integers: the direction numbers of the index's bits, by exclusive or."""
    direction = _directions().to(index.device)[column]  # [N, 30]
    point = torch.zeros_like(index)
    for bit in range(_BITS):
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
