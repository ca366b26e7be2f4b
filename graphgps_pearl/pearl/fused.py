r"""Batch normalisation, with ReLU behind it if wanted, in few passes over the rows.

Rows are taken in blocks that stay in the processor's cache: each is read once for the sums and once for the
result. A block's sums are taken about a reference close to the mean and in the rows' own precision (weighted
ones in float64), and the sums of the blocks are added in float64, so that nothing is lost over millions of
rows. ReLU is computed again in the backward pass instead of kept: the input of the norm is all that is.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from graphgps_pearl.pearl.once import first_derivatives

_BLOCK = 1024  # rows; at a width of 100 in float32 a block takes 400 kB


class BatchNormReLU(torch.autograd.Function):
    """y = γ (x - μ) / σ + β, then max(y, 0) if ``relu``; also gives μ, σ² and W, :obj:`[1, F]` in float64."""

    @staticmethod
    def forward(ctx, x, weight, bias, multiplicity, eps, relu):  # type: ignore[no-untyped-def] # torch's own
        """The normalised rows and their statistics."""
        dtype = torch.promote_types(x.dtype, torch.float32)
        w = None if multiplicity is None else multiplicity.to(dtype)
        count = torch.tensor(float(x.size(0)), dtype=torch.float64, device=x.device)
        if multiplicity is not None:
            count = multiplicity.sum(dtype=torch.float64)
        safe = count.clamp(min=1e-300)
        mean, var = _mean_and_variance(x, w, safe, dtype)
        invstd = (var + eps).rsqrt()
        scale = weight.double() * invstd
        shift = (bias.double() - mean * scale).to(dtype)
        y = _affine(x, scale.to(dtype), shift, relu)
        ctx.save_for_backward(x, weight, mean, invstd, w, safe, shift)
        ctx.relu = relu
        stats = mean.unsqueeze(0), var.unsqueeze(0), count.view(1, 1)
        ctx.mark_non_differentiable(*stats)
        return y, *stats

    @staticmethod
    @first_derivatives
    def backward(ctx, grad, *_):  # type: ignore[no-untyped-def] # torch's own signature
        """The gradients of the rows and of the two parameters."""
        x, weight, mean, invstd, w, count, shift = ctx.saved_tensors
        dtype = shift.dtype
        centre, scale = mean.to(dtype), (weight.double() * invstd).to(dtype)
        given, grad = grad.to(dtype), torch.empty_like(grad, dtype=dtype)
        sum_g, sum_gx = torch.zeros_like(mean), torch.zeros_like(mean)
        for block in _blocks(x):
            g, x_b = grad[block], x[block].to(dtype)
            if ctx.relu:
                torch.mul(given[block], torch.addcmul(shift, x_b, scale) > 0, out=g)
            else:
                g.copy_(given[block])
            sum_g += g.sum(0)
            sum_gx += (g * (x_b - centre)).sum(0)
        sum_gx *= invstd
        # dx = a g - w (b + c x)
        a = weight.double() * invstd
        c = a * invstd * sum_gx / count
        b = a * sum_g / count - c * mean
        a, b, c = a.to(dtype), b.to(dtype), c.to(dtype)
        for block in _blocks(x):
            correction = torch.addcmul(b, x[block].to(dtype), c)
            if w is not None:
                correction *= w[block].unsqueeze(1)
            grad[block].mul_(a).sub_(correction)
        return grad.to(x.dtype), sum_gx.to(weight.dtype), sum_g.to(weight.dtype), None, None, None


def _blocks(x: Tensor) -> Iterator[slice]:
    size = _BLOCK if x.device.type == "cpu" else max(x.size(0), 1)
    return (slice(start, start + size) for start in range(0, x.size(0), size))


def _mean_and_variance(
    x: Tensor, w: Tensor | None, count: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Mean and variance over all rows :obj:`[F]` in float64."""
    first = torch.zeros(x.size(1), dtype=torch.float64, device=x.device)
    second = torch.zeros_like(first)
    reference = _reference(x, w, dtype)
    for block in _blocks(x):
        d = x[block].to(dtype) - reference
        if w is None:
            first += d.sum(0)
            second += d.square_().sum(0)
        else:
            # a row may weigh as much as all the others: in float32 gradients would be off by 0.2%
            first += (w_d := d * w[block].unsqueeze(1)).sum(0, dtype=torch.float64)
            second += w_d.mul_(d).sum(0, dtype=torch.float64)
    offset = first / count
    return reference + offset, (second / count - offset.square()).clamp(min=0)


def _reference(x: Tensor, w: Tensor | None, dtype: torch.dtype) -> Tensor:
    """About the mean: that of some rows spread over all; of all of them where a few may weigh most."""
    if not x.size(0):
        return torch.zeros(x.size(1), dtype=dtype, device=x.device)
    if w is None:
        return x[:: max(x.size(0) // _BLOCK, 1)].to(dtype).mean(0)
    return (w / w.sum().clamp(min=1)) @ x.to(dtype)


def _affine(x: Tensor, scale: Tensor, shift: Tensor, relu: bool) -> Tensor:
    """``scale * x + shift``, then ReLU if wanted; half precision by way of float32."""
    y = torch.empty_like(x, dtype=scale.dtype)
    for block in _blocks(x):
        z = torch.addcmul(shift, x[block].to(scale.dtype), scale, out=y[block])
        if relu:
            z.clamp_(min=0)
    return y.to(x.dtype)
