r"""A whole layer of :math:`\Phi` with layer norm and ReLU, in blocks of rows that stay in the cache.

As :mod:`~graphgps_pearl.pearl.chain`, but every row has its own statistics, so a block goes through the whole
layer at once. With :math:`C` the projection that takes the mean off,

.. math:: z_k = h_{k-1} (C W_k)^\top + C b_k, \quad \hat z_k = z_k / \sqrt{|z_k|^2 / F + \epsilon}, \quad
          h_k = \max(0, \gamma_k \hat z_k + \beta_k)

so that no row's mean is ever computed: it is taken off the weights. The :math:`\hat z_k` are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from graphgps_pearl.pearl.blocks import Blocks, own, product, relu_gradient, to_neighbours
from graphgps_pearl.pearl.norm import LayerNorm
from graphgps_pearl.pearl.once import first_derivatives
from graphgps_pearl.pearl.room import empty
from graphgps_pearl.pearl.rows import Rows

RowChain = list[tuple[Tensor, Tensor, LayerNorm]]


def row_chained(
    x: Tensor, chain: RowChain, rows: Rows, eps: Tensor | None = None, skip: bool = False
) -> Tensor:
    """The layer's output; with ``eps`` it begins at the neighbours, and ``skip`` adds x in the end."""
    parameters = [t for weight, bias, norm in chain for t in (weight, bias, norm.weight, norm.bias)]
    return _RowChain.apply(x, eps, rows, skip, [norm.eps for *_, norm in chain], *parameters)


class _Step(NamedTuple):
    weight: Tensor  # C W, [out, in]
    bias: Tensor  # C b
    gamma: Tensor
    beta: Tensor
    mean: Tensor  # sums a row's features and divides by their number, [out, 1]


class _Scaled(NamedTuple):
    z: Tensor  # normalised rows, [R, out]
    invstd: Tensor  # what they were multiplied by, [R, 1]


class _RowChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, eps, rows, skip, norm_eps, *parameters):  # type: ignore[no-untyped-def]
        steps = _steps(parameters)
        h0 = x if eps is None else product(rows.matrix, x)
        blocks = Blocks(h0, [h0.size(1), *(step.weight.size(0) for step in steps)], None)
        keeps = [
            _Scaled(*(empty(h0.size(0), width, like=h0) for width in (step.weight.size(0), 1)))
            for step in steps
        ]
        out = empty(h0.size(0), steps[-1].weight.size(0), like=h0)
        for _, b in blocks:
            h = h0[b]
            if eps is not None:
                h.add_(own(x, rows, b), alpha=1 + float(eps))
            for step, kept, eps_k in zip(steps, keeps, norm_eps, strict=True):
                z, invstd = kept.z[b], kept.invstd[b]
                torch.addmm(step.bias, h, step.weight.t(), out=z)
                torch.mm(torch.mul(z, z, out=blocks.room(0, z)), step.mean, out=invstd)
                z *= invstd.add_(eps_k).rsqrt_()
                h = blocks.activated(z, step.gamma, step.beta)
            out_b = out[b].copy_(h)
            if skip:
                out_b += own(x, rows, b)
        ctx.save_for_backward(x, eps, h0, *parameters, *(t for kept in keeps for t in kept))
        ctx.rows, ctx.skip, ctx.parameters = rows, skip, len(parameters)
        return out

    @staticmethod
    @first_derivatives
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, eps, h0, *saved = ctx.saved_tensors
        steps = _steps(saved[: ctx.parameters])
        keeps = [_Scaled(*saved[i : i + 2]) for i in range(ctx.parameters, len(saved), 2)]
        blocks = Blocks(h0, [h0.size(1), *(step.weight.size(0) for step in steps)], None)
        wanted = eps is not None or ctx.needs_input_grad[0]
        g0 = empty(*h0.shape, like=h0) if wanted else None
        weights = [torch.zeros_like(step.weight) for step in steps]
        biases = [torch.zeros(1, step.weight.size(0), dtype=h0.dtype) for step in steps]
        sums = [blocks.table(step.weight.size(0)) for step in steps]
        for i, b in blocks:
            g = grad[b]
            h = blocks.activated(keeps[-1].z[b], steps[-1].gamma, steps[-1].beta)
            for k in reversed(range(len(steps))):
                step, z = steps[k], keeps[k].z[b]
                g = relu_gradient(g, h, 0, grad_input=blocks.room(2, z))
                blocks.add(sums[k], i, b, None, g, z)
                e = _unscaled(g.mul_(step.gamma), z, keeps[k].invstd[b], step, blocks)
                before = keeps[k - 1].z[b] if k else h0[b]
                h = blocks.activated(before, steps[k - 1].gamma, steps[k - 1].beta) if k else before
                weights[k].addmm_(e.t(), h)
                biases[k].addmm_(blocks.ones[:, b], e)
                if k or g0 is not None:
                    g = torch.mm(e, step.weight, out=g0[b] if g0 is not None and not k else None)
        gradients: list[Tensor] = []
        for k, total in enumerate(sums):
            beta, gamma = total.sum(1, dtype=torch.float64).to(h0.dtype)
            centred = [_centred(weights[k]), _centred(biases[k].squeeze(0))]
            gradients += [*centred, gamma.squeeze(0), beta.squeeze(0)]
        grad_x, grad_eps = g0, None
        if eps is not None and g0 is not None:
            grad_x, grad_eps = to_neighbours(g0, grad if ctx.skip else None, x, eps, ctx.rows, blocks)
        return grad_x, grad_eps, None, None, None, *gradients


def _unscaled(g: Tensor, z: Tensor, invstd: Tensor, step: _Step, blocks: Blocks) -> Tensor:
    """The gradient of a norm's input but for its mean, in place: invstd (g - z mean(g z))."""
    along = torch.mm(torch.mul(g, z, out=blocks.room(0, z)), step.mean)
    return torch.addcmul(g, z, along, value=-1, out=g).mul_(invstd)


def _centred(tensor: Tensor) -> Tensor:
    """Less the mean over the first dimension."""
    return tensor - tensor.mean(0)


def _steps(parameters: Sequence[Tensor]) -> list[_Step]:
    steps = []
    for i in range(0, len(parameters), 4):
        weight, bias, gamma, beta = parameters[i : i + 4]
        mean = weight.new_full((weight.size(0), 1), 1 / weight.size(0))
        steps.append(_Step(_centred(weight), _centred(bias), gamma, beta, mean))
    return steps
