r"""Normalisation of rows, with sums accumulated in float64.

Batch normalisation of B-PEARL runs over millions of rows; summed in float32 its gradients are off by several
per cent. Here every sum over rows is a float64 sum over blocks of rows, at no cost in memory.

Rows may stand for several equal ones: with multiplicities :math:`w_i` and :math:`W = \sum_i w_i`

.. math::
    \mu = \tfrac1W \sum_i w_i x_i, \quad \sigma^2 = \tfrac1W \sum_i w_i (x_i - \mu)^2, \quad
    y_i = \gamma\, \hat x_i + \beta, \quad \hat x_i = (x_i - \mu) / \sqrt{\sigma^2 + \epsilon}

.. math::
    \partial x_i = \frac{\gamma}{\sigma} \Big(g_i - \frac{w_i}{W} \big(\sum_j g_j
                   + \hat x_i \sum_j g_j \hat x_j\big)\Big)

which is what batch normalisation of the :math:`W` rows written out would give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.pearl.fused import BatchNormReLU
from graphgps_pearl.pearl.names import ACTIVATIONS, check_name
from graphgps_pearl.pearl.once import first_derivatives

if TYPE_CHECKING:
    from graphgps_pearl.pearl.rows import Rows

NORMS = ("batch", "layer", "none", "graph")
_BLOCK = 8192  # rows that are in float64 at any one time


class BatchNorm(nn.Module):
    r"""Batch normalisation over rows :obj:`[R, F]`, in evaluation with the running statistics.

    A single row has no variance: its output is :math:`\beta` and the running variance is left alone. In the
    running variance the factor :math:`W / (W - 1)` makes the estimate unbiased, as in PyTorch.

    >>> norm, x = BatchNorm(3), torch.randn(50, 3)
    >>> torch.allclose(norm(x), torch.nn.BatchNorm1d(3)(x), atol=1e-6)
    True
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, dim: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.dim, self.eps, self.momentum = dim, eps, momentum
        self.weight = nn.Parameter(torch.empty(dim))
        self.bias = nn.Parameter(torch.empty(dim))
        self.register_buffer("running_mean", torch.empty(dim))
        self.register_buffer("running_var", torch.empty(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Start again: unit weight, zero bias, statistics of a standard normal."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        self.running_mean.zero_()
        self.running_var.fill_(1)

    def forward(self, x: Tensor, rows: Rows | None = None, relu: bool = False) -> Tensor:
        """Normalise ``x``; ``rows`` knows the multiplicities, none means that every row counts once.

        ``relu`` applies ReLU to the result, which together costs less than one after the other.
        """
        if not self.training:
            y = F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
            return F.relu(y) if relu else y
        y, mean, var, count = self._normalise(x, rows, relu)
        self.track(mean, var, count)
        return y

    def _normalise(self, x: Tensor, rows: Rows | None, relu: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        multiplicity = None if rows is None else rows.weight
        return BatchNormReLU.apply(x, self.weight, self.bias, multiplicity, self.eps, relu)

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """Move the running statistics by one step for each group, in order (as one step at a time would)."""
        if count.numel() == 1:  # the usual case, in a fifth of the calls
            rows = float(count)
            if rows > 0:
                self.running_mean.lerp_(mean[0].to(self.running_mean.dtype), self.momentum)
            if rows > 1:
                unbiased = var[0] * (rows / (rows - 1))
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), self.momentum)
            return
        has_mean, has_var = (count > 0).squeeze(1), (count > 1).squeeze(1)
        unbiased = var * (count / (count - 1).clamp(min=1e-12))
        self._average(self.running_mean, mean[has_mean])
        self._average(self.running_var, unbiased[has_var])

    def _average(self, running: Tensor, new: Tensor) -> None:
        """Exponential moving average over the rows of ``new``, the last one weighing most."""
        steps_after = torch.arange(new.size(0) - 1, -1, -1, device=new.device, dtype=new.dtype)
        share = self.momentum * (1 - self.momentum) ** steps_after
        kept = (1 - self.momentum) ** new.size(0)
        running.copy_(running * kept + share @ new)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim})"


class GraphNorm(BatchNorm):
    """Batch normalisation that in training runs over the rows of one graph at a time.

    It is what the authors' code does in the first layer: in training its output depends on the size of the
    graph, in evaluation it uses the running statistics, which take one step for each graph.
    """

    def _normalise(self, x: Tensor, rows: Rows | None, relu: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        if rows is None:
            raise ValueError("norm 'graph' has to know the graph of every row")
        y, *statistics = _Normalise.apply(
            x, self.weight, self.bias, rows.weight, rows.graph, rows.num_graphs, self.eps
        )
        return F.relu(y) if relu else y, *statistics


class LayerNorm(nn.LayerNorm):
    """Layer normalisation of every row by itself."""

    def __init__(self, dim: int) -> None:
        if dim < 2:
            raise ValueError("norm 'layer' needs a width of at least 2: over one column it is constant")
        super().__init__(dim)

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """Normalise ``x``; ``rows`` is not needed."""
        return super().forward(x)


class NoNorm(nn.Module):
    """The rows as they are."""

    def reset_parameters(self) -> None:
        """Nothing to reset."""

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """Return ``x``."""
        return x


RowNorm = BatchNorm | LayerNorm | NoNorm


def make_norm(name: str, dim: int) -> RowNorm:
    """The normalisation called ``name`` (one of :data:`NORMS`) of rows of width ``dim``."""
    check_name("norm", name, NORMS)
    if name == "batch":
        return BatchNorm(dim)
    if name == "graph":
        return GraphNorm(dim)
    return LayerNorm(dim) if name == "layer" else NoNorm()


def norm_and_activation(norm: nn.Module, act: str, x: Tensor, rows: Rows) -> Tensor:
    """The activation of the normalised rows."""
    if act == "relu" and isinstance(norm, BatchNorm):
        return norm(x, rows, relu=True)
    return ACTIVATIONS[act](norm(x, rows))


def has_own_bias(name: str) -> bool:
    """Whether the norm takes away whatever constant the linear map before it adds."""
    return name in ("batch", "graph")


class _Normalise(torch.autograd.Function):
    """Weighted batch normalisation of each group of rows; only ``x`` itself is kept for the backward pass."""

    @staticmethod
    def forward(ctx, x, weight, bias, multiplicity, group, num_groups, eps):  # type: ignore[no-untyped-def]
        w = None if multiplicity is None else multiplicity.double().unsqueeze(1)

        def total(terms: Callable[[slice], Tensor]) -> Tensor:
            return _group_sum(terms, x, group, num_groups)

        def weighted(block: slice, term: Tensor) -> Tensor:
            return term if w is None else term * w[block]

        count = total(lambda b: weighted(b, torch.ones_like(x[b, :1], dtype=torch.float64)))
        safe = count.clamp(min=1e-300)
        mean = total(lambda b: weighted(b, x[b].double())) / safe
        var = total(lambda b: weighted(b, (x[b].double() - _of(mean, group, b)).square())) / safe
        invstd = (var + eps).rsqrt()
        scale = weight.double() * invstd
        shift = bias.double() - mean * scale
        y = _affine(x, scale, shift, group)
        ctx.save_for_backward(x, weight, mean, invstd, w, group, safe)
        ctx.num_groups = num_groups
        ctx.mark_non_differentiable(mean, var, count)
        return y, mean, var, count

    @staticmethod
    @first_derivatives
    def backward(ctx, grad, *_):  # type: ignore[no-untyped-def]
        x, weight, mean, invstd, w, group, count = ctx.saved_tensors

        def scaled(block: slice) -> Tensor:
            return (x[block].double() - _of(mean, group, block)) * _of(invstd, group, block)

        sum_g = _group_sum(lambda b: grad[b].double(), x, group, ctx.num_groups)
        sum_gx = _group_sum(lambda b: grad[b].double() * scaled(b), x, group, ctx.num_groups)

        # dx = a g - w (b + c x), with a, b, c constant in each group
        a = weight.double() * invstd
        c = a * invstd * sum_gx / count
        b = a * sum_g / count - c * mean
        correction = _affine(x, c, b, group)
        if w is not None:
            correction *= w.to(x.dtype)
        grad_x = _affine(grad, a, torch.zeros_like(a), group).sub_(correction).to(x.dtype)
        return grad_x, sum_gx.sum(0).to(weight.dtype), sum_g.sum(0).to(weight.dtype), *[None] * 4


def _group_sum(terms: Callable[[slice], Tensor], x: Tensor, group: Tensor | None, num_groups: int) -> Tensor:
    """Sum float64 terms over the rows of each group, block by block: :obj:`[num_groups, F]`."""
    total: Tensor | None = None
    for start in range(0, max(x.size(0), 1), _BLOCK):
        block = slice(start, start + _BLOCK)
        term = terms(block)
        if total is None:
            total = term.new_zeros(num_groups, term.size(1))
        if group is None:
            total[0] += term.sum(0)
        else:
            total.index_add_(0, group[block], term)
    assert total is not None
    return total


def _of(statistic: Tensor, group: Tensor | None, block: slice) -> Tensor:
    return statistic if group is None else statistic[group[block]]


def _affine(x: Tensor, scale: Tensor, shift: Tensor, group: Tensor | None) -> Tensor:
    """``scale * x + shift``, half precision by way of float32."""
    dtype = torch.promote_types(x.dtype, torch.float32)
    scale, shift = scale.to(dtype), shift.to(dtype)
    if group is None:
        return torch.addcmul(shift, x.to(dtype), scale).to(x.dtype)
    return (x * scale[group] + shift[group]).to(x.dtype)
