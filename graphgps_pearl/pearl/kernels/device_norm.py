r"""Batch norm of rows with multiplicities in few operations, for devices on which each costs a launch.

With shares :math:`p_i = w_i / W` of the rows, two products give mean and variance,

.. math:: \mu = \sum_i p_i x_i, \qquad \sigma^2 = \sum_i p_i (x_i - \mu)^2

and torch's batch norm in evaluation does the rest in one operation each way. Its backward pass holds the
statistics constant and gives :math:`\sum g \hat x` and :math:`\sum g`; what their dependence on x adds is

.. math:: -p_i \frac{\gamma}{\sigma} \big(\hat x_i \textstyle\sum g \hat x + \sum g\big),

a batch norm of x with another weight and bias. All sums are in the precision of the rows: a device adds in
parallel, so that their error grows with the logarithm of the number of rows.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgps_pearl.pearl.norm import BatchNorm, first_derivatives_of_norms


def weighted_norm(norm: BatchNorm, x: Tensor, share: Tensor, total: int) -> Tensor:
    """Normalise rows :obj:`[R, F]` that stand for ``total`` rows, each for its ``share`` :obj:`[R]` of them.

    The running statistics of ``norm`` are updated.
    """
    y, mean, var = _Weighted.apply(x, norm.weight, norm.bias, share, norm.eps)
    with torch.no_grad():
        norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), norm.momentum)
        if total > 1:
            unbiased = var * (total / (total - 1))
            norm.running_var.lerp_(unbiased.to(norm.running_var.dtype), norm.momentum)
    return y


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, share, eps):  # type: ignore[no-untyped-def] # torch's signature
        mean = share @ x
        var = share @ (x - mean).square()
        ctx.save_for_backward(x, weight, share, mean, var)
        ctx.eps = eps
        ctx.mark_non_differentiable(mean, var)
        return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps), mean, var

    @staticmethod
    @first_derivatives_of_norms
    def backward(ctx, grad, *_):  # type: ignore[no-untyped-def] # torch's signature
        x, weight, share, mean, var = ctx.saved_tensors
        statistics = x, weight, mean, var, None, None, False, ctx.eps, [True, True, True]
        grad_x, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(grad, *statistics)
        scale = weight * (var + ctx.eps).rsqrt()
        through = F.batch_norm(x, mean, var, scale * grad_weight, scale * grad_bias, False, 0.0, ctx.eps)
        return (
            torch.addcmul(grad_x, share.unsqueeze(1), through, value=-1),
            grad_weight,
            grad_bias,
            None,
            None,
        )
