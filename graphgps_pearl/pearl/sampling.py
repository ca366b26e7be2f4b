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

The numbers come from a counter (:mod:`~graphgps_pearl.pearl.counter`): chunks, batches and larger graphs see
the same ones, and no random state moves.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphgps_pearl.pearl.counter import make_key, random_bits, uniform
from graphgps_pearl.pearl.names import check_name
from graphgps_pearl.pearl.sobol import sobol_points

__all__ = ["LAWS", "draw_samples", "make_key"]

LAWS = ("gaussian", "rademacher", "two_point", "sobol")

_GOLDEN_RATIO = (1 + math.sqrt(5)) / 2


def draw_samples(
    law: str,
    key: Tensor,
    position: Tensor,
    start: int,
    stop: int,
    dtype: torch.dtype | None = None,
    num_samples: int | None = None,
) -> Tensor:
    """Samples ``start`` to ``stop`` of the signals at the given positions, :obj:`[N, stop - start]`.

    Args:
        law: one of :data:`LAWS`.
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
    check_name("law", law, LAWS)
    dtype = dtype or torch.get_default_dtype()
    sample = torch.arange(start, stop, device=position.device)
    if law == "sobol":
        return torch.special.ndtri(sobol_points(key, position, sample, num_samples or stop)).to(dtype)
    bits = random_bits(key, position, sample)
    if law == "rademacher":
        return torch.where(bits < 0, -1.0, 1.0).to(dtype)
    if law == "two_point":
        likely = 1 / (1 + _GOLDEN_RATIO**2)
        return torch.where(uniform(bits) < likely, _GOLDEN_RATIO, -1 / _GOLDEN_RATIO).to(dtype)
    return torch.special.ndtri(uniform(bits)).to(dtype)
