r"""Statistics over the samples: :math:`P = \rho(P^{(1)}, \dots, P^{(M)})`.

Everything a statistic needs is additive in the samples (or a maximum), so samples may arrive in chunks:

.. math::
    c = \sum_m 1, \quad s = \sum_m (x_m - r), \quad t = \sum_m (x_m - r)^2, \qquad
    mean = r + s / c, \quad var = t / c - (s / c)^2

for any reference :math:`r` that does not depend on :math:`m`. It is held constant (neither the values nor the
gradients depend on it) and lies close to the mean, so that nothing cancels. The variance is that of the
:math:`M` samples themselves (no :math:`M - 1`).

B-PEARL's samples are the nodes themselves, so there is one more: ``self``, the diagonal
:math:`\Phi(G, e_v)_v`, what comes back to a node of the signal that starts there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.pearl.checks import check_name
from graphgps_pearl.pearl.rows import PairRows
from graphgps_pearl.vocabulary import POOLS


class Moments(NamedTuple):
    """What :func:`statistics` needs of the samples seen so far; :obj:`[N, D]` each."""

    size: Tensor  # [N, 1], how many samples
    reference: Tensor | None
    first: Tensor
    second: Tensor | None
    maximum: Tensor | None
    own: Tensor | None = None  # the diagonal, where the samples are the nodes


def parse_pool(pool: str, known: Sequence[str] = POOLS) -> tuple[str, ...]:
    """Split a name such as ``mean+std`` into the ``known`` statistics it is made of.

    >>> parse_pool("mean+std")
    ('mean', 'std')
    """
    names = tuple(name.strip() for name in pool.split("+"))
    for name in names:
        check_name("pool", name, known)
    if len(set(names)) < len(names):
        raise ValueError(f"pool {pool!r} names a statistic twice")
    return names


def sample_moments(x: Tensor, pool: Sequence[str], reference: Tensor | None = None) -> Moments:
    """Moments over the samples of ``x`` :obj:`[N, M, D]`; chunks to be merged share a ``reference``."""
    size = x.new_full((x.size(0), 1), x.size(1))
    second = None
    if _spread(pool):
        reference = x.mean(1).detach() if reference is None else reference
        x_r = x - reference.unsqueeze(1)
        first, second = x_r.sum(1), x_r.square().sum(1)
    else:
        first = x.sum(1)
    return Moments(size, reference, first, second, x.amax(1) if "max" in pool else None)


def pair_moments(x: Tensor, rows: PairRows, pool: Sequence[str]) -> Moments:
    """Moments over the basis vectors :math:`m` of rows ``x`` :obj:`[R, D]` (pairs, or what they merge to)."""
    size = rows.size.to(x.dtype).unsqueeze(1)
    first = rows.pool @ x
    reference = second = maximum = None
    if _spread(pool):
        reference = (first / size).detach()
        x_r = rows.entries(x) - reference[rows.node]
        first, second = rows.entry_pool @ x_r, rows.entry_pool @ x_r.square()
    if "max" in pool:
        maximum = _pair_maximum(rows.entries(x), rows)
    own = x.index_select(0, rows.diagonal) if "self" in pool else None
    return Moments(size, reference, first, second, maximum, own)


def _pair_maximum(x: Tensor, rows: PairRows) -> Tensor:
    """The maximum of every node's entries; pairs that share it share the gradient, as torch has it."""
    with torch.no_grad():
        node = rows.node.unsqueeze(1).expand_as(x)
        top = x.new_zeros(rows.size.numel(), x.size(1)).scatter_reduce(0, node, x, "amax", include_self=False)
        highest = (x == top[rows.node]).to(x.dtype)
        share = highest / (rows.entry_pool @ highest)[rows.node]
    mean = rows.entry_pool @ (share * x)  # the maximum but for rounding
    return top + (mean - mean.detach())


def tap_moments(taps: Tensor) -> Tensor:
    r"""Second moments of the taps over the samples, by total power: :obj:`[N, M, K]` to :obj:`[N, 2 K - 2]`.

    For a symmetric S and signals with :math:`E q q^\top = I`,

    .. math:: E[(S^j q)_v (S^k q)_v] = (S^{j+k})_{vv},

    so the mean over all (j, k) with j + k = s estimates the diagonal of :math:`S^s`. With ``sym_adjacency``
    it is the probability that a random walk of s steps returns (RWSE). Column s - 1 has s = 1, ..., 2 K - 2.

    >>> q = torch.tensor([[1.0, 1.0], [1.0, -1.0]])  # orthogonal samples: the estimate is exact
    >>> S = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    >>> tap_moments(torch.stack([q, S @ q], dim=2)).tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    num_taps = taps.size(2)
    covariance = taps.transpose(1, 2) @ taps / taps.size(1)  # [N, K, K]
    k = torch.arange(num_taps, device=taps.device)
    power = (k.unsqueeze(1) + k).flatten()  # [K * K], j + k
    # Not of the taps' type: under autocast the product is in bfloat16.
    total = covariance.new_zeros(taps.size(0), 2 * num_taps - 1).index_add(1, power, covariance.flatten(1))
    ways = num_taps - (torch.arange(2 * num_taps - 1, device=taps.device) - (num_taps - 1)).abs()
    return (total / ways.to(taps.dtype))[:, 1:]


def merge_moments(a: Moments, b: Moments) -> Moments:
    """Moments of two disjoint sets of samples together; both have the same reference."""
    second = a.second + b.second if a.second is not None and b.second is not None else None
    maximum = torch.maximum(a.maximum, b.maximum) if a.maximum is not None and b.maximum is not None else None
    return Moments(a.size + b.size, a.reference, a.first + b.first, second, maximum)


def is_linear(pool: Sequence[str]) -> bool:
    """Whether all statistics of a linear map's output are linear in those of its input."""
    return set(pool) <= {"mean", "sum", "self"}


def mapped_moments(moments: Moments, linear: nn.Linear) -> Moments:
    """Moments of the samples after a linear map, for linear statistics: one row a node is multiplied, not M.

    >>> x, linear = torch.randn(4, 50, 3), torch.nn.Linear(3, 2)
    >>> late = mapped_moments(sample_moments(x, ["mean"]), linear)
    >>> torch.allclose(late.first, sample_moments(linear(x), ["mean"]).first, atol=1e-5)
    True
    """
    first, own = F.linear(moments.first, linear.weight), moments.own
    if linear.bias is not None:
        first = first + moments.size * linear.bias
    return moments._replace(first=first, own=None if own is None else linear(own))


def statistics(moments: Moments, pool: Sequence[str]) -> Tensor:
    """The statistics named in ``pool`` side by side, :obj:`[N, len(pool) * D]`.

    >>> x = torch.tensor([[[1.0], [2.0], [3.0], [6.0]]])  # one node, four samples
    >>> pool = ("mean", "sum", "var", "max")
    >>> statistics(sample_moments(x, pool), pool).tolist()
    [[3.0, 12.0, 3.5, 6.0]]
    """
    return torch.cat([_statistic(moments, name) for name in pool], dim=1)


def _statistic(moments: Moments, name: str) -> Tensor:
    size, reference, first, second, maximum, own = moments
    if name in ("mean", "sum"):
        total = first if reference is None else first + size * reference
        return total if name == "sum" else total / size
    if name == "max":
        assert maximum is not None
        return maximum
    if name == "self":
        assert own is not None
        return own
    assert second is not None
    var = (second / size - (first / size).square()).clamp(min=0)
    if name == "var":
        return var
    # the root has no slope at 0: a node whose samples all agree passes no gradient on
    positive = var > 0
    return torch.where(positive, torch.where(positive, var, torch.ones_like(var)).sqrt(), var)


def _spread(pool: Sequence[str]) -> bool:
    return "var" in pool or "std" in pool
