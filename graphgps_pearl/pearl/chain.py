r"""A whole layer of :math:`\Phi` with batch norm and ReLU, in blocks of rows that stay in the cache.

From rows :math:`h_0` on (:math:`(1 + \epsilon) x + A x` in a GIN layer, the taps in a generalised one)

.. math:: z_k = h_{k-1} W_k^\top, \quad h_k = \max(0, s_k z_k + t_k), \quad s_k = \gamma_k / \sigma_k, \quad
          t_k = \beta_k - \mu_k s_k

for k = 1, ..., n; the output is :math:`h_n`, plus x where there is a skip. The statistics of :math:`z_k` need
all rows, so each k is one pass over the blocks: it makes a block's :math:`h_{k-1}`, multiplies and sums.
Kept for the backward pass are :math:`h_0` and the :math:`z_k`; one pass over the blocks for each k gives

.. math:: e_k = g_k - \tfrac{w}{W} \big(\textstyle\sum g_k + \hat z_k \sum g_k \hat z_k\big), \quad
          \partial W_k = s_k e_k^\top h_{k-1}, \quad g_{k-1} = [h_{k-1} > 0]\, e_k\, s_k W_k

with w the rows' multiplicities. A block is summed in the rows' own precision, the blocks in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from graphgps_pearl.pearl.blocks import Blocks, own, product, relu_gradient, to_neighbours
from graphgps_pearl.pearl.norm import BatchNorm
from graphgps_pearl.pearl.once import first_derivatives
from graphgps_pearl.pearl.room import empty
from graphgps_pearl.pearl.rows import Rows

_FAR = 16.0  # where a squared mean is more than so many variances, it is taken off before squaring


class Step(NamedTuple):
    """A linear map of a layer and the norm behind it."""

    weight: Tensor  # [out, in]
    gamma: Tensor
    beta: Tensor


Chain = list[tuple[Tensor, BatchNorm]]


def chained(x: Tensor, chain: Chain, rows: Rows, eps: Tensor | None = None, skip: bool = False) -> Tensor:
    """The layer's output; with ``eps`` it begins at the neighbours, and ``skip`` adds x in the end."""
    parameters = [tensor for weight, norm in chain for tensor in (weight, norm.weight, norm.bias)]
    out, count, *statistics = _BatchChain.apply(
        x, eps, rows, skip, [norm.eps for _, norm in chain], *parameters
    )
    for k, (_, norm) in enumerate(chain):
        norm.track(statistics[2 * k], statistics[2 * k + 1], count)
    return out


class _Norm(NamedTuple):
    """One norm: what it is given, and how that goes on."""

    z: Tensor  # [R, F], less a constant where the mean is far from zero
    mean: Tensor  # of z as it is held, in float64
    invstd: Tensor  # in float64
    scale: Tensor  # s
    shift: Tensor  # t


class _BatchChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, eps, rows, skip, norm_eps, *parameters):  # type: ignore[no-untyped-def]
        steps = _steps(parameters)
        h0 = x if eps is None else product(rows.matrix, x)
        blocks = Blocks(h0, _widths(h0, steps), rows.weight)
        if eps is not None:
            for _, b in blocks:
                h0[b].add_(own(x, rows, b), alpha=1 + float(eps))
        norms: list[_Norm] = []
        statistics: list[Tensor] = []
        for step, eps_k in zip(steps, norm_eps, strict=True):
            z = empty(h0.size(0), step.weight.size(0), like=h0)
            sums = blocks.table(z.size(1))
            for i, b in blocks:
                h = _activated(norms[-1], b, blocks) if norms else h0[b]
                z_b = torch.mm(h, step.weight.t(), out=z[b])
                blocks.add(sums, i, b, blocks.weight, z_b, z_b)
            taken, mean, var = _mean_and_variance(z, sums, blocks)
            norms.append(_normalised(z, mean, var, step, eps_k))
            statistics += [(taken + mean).unsqueeze(0), var.unsqueeze(0)]
        out = empty(*norms[-1].z.shape, like=h0)
        for _, b in blocks:
            out_b = torch.addcmul(norms[-1].shift, norms[-1].z[b], norms[-1].scale, out=out[b]).relu_()
            if skip:
                out_b += own(x, rows, b)
        ctx.save_for_backward(x, eps, h0, *parameters, *(t for norm in norms for t in norm))
        ctx.rows, ctx.skip, ctx.steps = rows, skip, len(steps)
        count = blocks.count.view(1, 1)
        ctx.mark_non_differentiable(count, *statistics)
        return out, count, *statistics

    @staticmethod
    @first_derivatives
    def backward(ctx, grad, *_):  # type: ignore[no-untyped-def]
        x, eps, h0, *saved = ctx.saved_tensors
        steps = _steps(saved[: 3 * ctx.steps])
        norms = [_Norm(*saved[i : i + 5]) for i in range(3 * ctx.steps, len(saved), 5)]
        blocks = Blocks(h0, _widths(h0, steps), ctx.rows.weight)
        gradients: list[Tensor] = []
        g, sums = _behind_last(grad, norms[-1], blocks)
        for k in reversed(range(len(steps))):
            before = norms[k - 1] if k else None
            wanted = k or eps is not None or ctx.needs_input_grad[0]
            g_before = empty(h0.size(0), steps[k].weight.size(1), like=h0) if wanted else None
            g, sums, step_gradients = _back(g, sums, g_before, steps[k], norms[k], before or h0, blocks)
            gradients = [*step_gradients, *gradients]
        grad_x, grad_eps = g, None
        if eps is not None:
            grad_x, grad_eps = to_neighbours(g, grad if ctx.skip else None, x, eps, ctx.rows, blocks)
        return grad_x, grad_eps, None, None, None, *gradients


def _behind_last(grad: Tensor, norm: _Norm, blocks: Blocks) -> tuple[Tensor, Tensor]:
    """g_n and its sums."""
    g, sums = empty(*norm.z.shape, like=norm.z), blocks.table(norm.z.size(1))
    for i, b in blocks:
        relu_gradient(grad[b], _activated(norm, b, blocks), 0, grad_input=g[b])
        blocks.add(sums, i, b, None, g[b], norm.z[b])
    return g, sums


def _back(
    g: Tensor,
    sums: Tensor,
    out: Tensor | None,
    step: Step,
    norm: _Norm,
    before: _Norm | Tensor,
    blocks: Blocks,
) -> tuple[Tensor | None, Tensor, tuple[Tensor, Tensor, Tensor]]:
    """From g_k to g_{k-1} (in ``out``, if anybody wants it), its sums, and the gradients of the step."""
    sum_g, sum_gz = sums.sum(1, dtype=torch.float64).squeeze(1)
    sum_gz = (sum_gz - norm.mean * sum_g) * norm.invstd
    slope = norm.invstd * sum_gz / blocks.total
    at_zero = (sum_g / blocks.total - slope * norm.mean).to(g.dtype)
    slope = slope.to(g.dtype)
    scaled = step.weight * norm.scale.unsqueeze(1)
    grad_weight = torch.zeros_like(step.weight)
    new_sums = blocks.table(step.weight.size(1))
    for i, b in blocks:
        e = _corrected(g[b], norm, at_zero, slope, b, blocks)
        h = before[b] if isinstance(before, Tensor) else _activated(before, b, blocks)
        grad_weight.addmm_(e.t(), h)
        if out is None:
            continue
        g_before = torch.mm(e, scaled, out=out[b])
        if isinstance(before, _Norm):
            relu_gradient(g_before, h, 0, grad_input=g_before)
            blocks.add(new_sums, i, b, None, g_before, before.z[b])
    grad_weight *= norm.scale.unsqueeze(1)
    return out, new_sums, (grad_weight, sum_gz.to(g.dtype), sum_g.to(g.dtype))


def _steps(parameters: Sequence[Tensor]) -> list[Step]:
    return [Step(*parameters[i : i + 3]) for i in range(0, len(parameters), 3)]


def _widths(h0: Tensor, steps: Sequence[Step]) -> list[int]:
    return [h0.size(1), *(step.weight.size(0) for step in steps)]


def _mean_and_variance(z: Tensor, sums: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor, Tensor]:
    """What was taken off ``z``, the mean of what is left, and the variance; :obj:`[F]` in float64."""
    mean, var = _moments(sums, blocks)
    taken = torch.zeros_like(mean)
    if bool((mean.square() > _FAR * var).any()):
        taken = mean.to(z.dtype)
        for i, b in blocks:
            blocks.add(sums, i, b, blocks.weight, z[b].sub_(taken), z[b])
        mean, var = _moments(sums, blocks)
    return taken.double(), mean, var.clamp(min=0)


def _moments(sums: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
    first, second = sums.sum(1, dtype=torch.float64).squeeze(1) / blocks.total
    return first, second - first.square()


def _normalised(z: Tensor, mean: Tensor, var: Tensor, step: Step, norm_eps: float) -> _Norm:
    invstd = (var + norm_eps).rsqrt()
    scale = step.gamma.double() * invstd
    shift = step.beta.double() - mean * scale
    return _Norm(z, mean, invstd, scale.to(z.dtype), shift.to(z.dtype))


def _activated(norm: _Norm, b: slice, blocks: Blocks) -> Tensor:
    """A block of h_k."""
    return blocks.activated(norm.z[b], norm.scale, norm.shift)


def _corrected(g: Tensor, norm: _Norm, at_zero: Tensor, slope: Tensor, b: slice, blocks: Blocks) -> Tensor:
    """A block of e_k = g_k - w (at_zero + slope z_k)."""
    e = torch.addcmul(at_zero, norm.z[b], slope, out=blocks.room(2, g))
    if blocks.weight is None:
        return torch.sub(g, e, out=e)
    return torch.addcmul(g, blocks.weight[0, b].unsqueeze(1), e, value=-1, out=e)
