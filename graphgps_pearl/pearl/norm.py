r"""Normalisation of rows :obj:`[R, F]`: one batch norm, which may weigh its rows, and a layer norm.

Rows may stand for several equal ones. With multiplicities :math:`w_i` (1 unless given), :math:`W = \sum_i
w_i`

.. math::
    \mu = \tfrac1W \sum_i w_i x_i, \quad \sigma^2 = \tfrac1W \sum_i w_i (x_i - \mu)^2, \quad
    y_i = \gamma\, \hat x_i + \beta, \quad \hat x_i = (x_i - \mu) / \sqrt{\sigma^2 + \epsilon}

.. math::
    \partial x_i = \frac{\gamma}{\sigma} \Big(g_i - \frac{w_i}{W} \big(\sum_j g_j
                   + \hat x_i \sum_j g_j \hat x_j\big)\Big)

which is what batch norm of the :math:`W` rows written out gives. The sums over rows are float64: over the
millions of rows of B-PEARL, float32 sums make gradients wrong by several per cent. That is why the backward
pass is written by hand.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.pearl.checks import check_name
from graphgps_pearl.pearl.hooks import weighted_norm
from graphgps_pearl.vocabulary import NORMS

if TYPE_CHECKING:
    from graphgps_pearl.pearl.rows import Rows

Exchange = Callable[[Tensor], Tensor]


Backward = Callable[..., Any]


def first_derivatives_only(message: str) -> Callable[[Backward], Backward]:
    """Make a hand-written backward pass refuse, with this message, to be differentiated again.

    torch's ``once_differentiable`` raises only where the second derivative goes through the incoming
    gradient; one by a weight does not, and would silently lack a term.
    """

    def decorate(backward: Backward) -> Backward:
        @functools.wraps(backward)
        def checked(*arguments: Any) -> Any:
            if torch.is_grad_enabled():  # create_graph=True
                raise RuntimeError(message)
            return backward(*arguments)

        return checked

    return decorate


first_derivatives_of_norms = first_derivatives_only(
    "PEARL with batch norm has no second derivatives; norm='none' and norm='layer' have them"
)


_FEW = 4096  # rows of nodes that torch's own norm is exact enough for


class BatchNorm(nn.Module):
    r"""Batch normalisation over rows :obj:`[R, F]`, in evaluation with the running statistics.

    A single row has no variance: its output is :math:`\beta` and the running variance is not updated. In the
    running variance the factor :math:`W / (W - 1)` makes the estimate unbiased, as in PyTorch.

    ``reduce``, if set, sums a tensor over all processes; the statistics are then those of all of them.

    >>> norm, x = BatchNorm(3), torch.randn(50, 3)
    >>> torch.allclose(norm(x), torch.nn.BatchNorm1d(3)(x), atol=1e-6)
    True
    """

    running_mean: Tensor
    running_var: Tensor
    reduce: Exchange | None = None

    def __init__(self, dim: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.dim, self.eps, self.momentum = dim, eps, momentum
        self.weight = nn.Parameter(torch.empty(dim))
        self.bias = nn.Parameter(torch.empty(dim))
        self.register_buffer("running_mean", torch.empty(dim))
        self.register_buffer("running_var", torch.empty(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Unit weight, zero bias, running statistics of a standard normal."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)
        self.running_mean.zero_()
        self.running_var.fill_(1)

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """Normalise ``x``; ``rows`` has the multiplicities, None: every row counts once."""
        if not self.training:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        multiplicity = None if rows is None else rows.multiplicity
        device = x.device.type != "cpu"
        if self.reduce is None and x.size(0) > 1 and (device or (rows is None and x.size(0) <= _FEW)):
            if multiplicity is None:
                # Float32 sums of few rows are accurate, and those of a GPU, whose kernel adds in parallel.
                statistics = self.running_mean, self.running_var, self.weight, self.bias
                return F.batch_norm(x, *statistics, training=True, momentum=self.momentum, eps=self.eps)
            if (fast := weighted_norm(self, x, rows)) is not None:
                return fast
        y, mean, var, count = normalised(x, self.weight, self.bias, self.eps, multiplicity, self.reduce)
        self.track(mean, var, count)
        return y

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """Update the running statistics by mean and variance :obj:`[1, F]` of ``count`` rows."""
        unbiased = var[0] * (count[0] / (count[0] - 1).clamp(min=1))
        for running, new, least in ((self.running_mean, mean[0], 1), (self.running_var, unbiased, 2)):
            share = self.momentum * (count[0] >= least).to(running.dtype)
            running.lerp_(new.to(running.dtype), share)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dim})"


class GraphNorm(BatchNorm):
    """Batch normalisation that in training runs over the rows of one graph at a time.

    This is what the authors' code does in the first layer: in training its output depends on the size of the
    graph, in evaluation it uses the running statistics, which take one step for each graph.

    ``gather``, if set, collects the statistics :obj:`[B, 2 F + 1]` of the graphs of all processes.
    """

    gather: Exchange | None = None

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """Normalise ``x``; ``rows`` has the graph of every row."""
        if not self.training:
            return super().forward(x)
        if rows is None:
            raise ValueError("norm 'graph' needs the graph of every row")
        y, *statistics = _Normalise.apply(
            x, self.weight, self.bias, rows.multiplicity, rows.graph, rows.num_graphs, self.eps, None
        )
        self.track(*statistics)
        return y

    @torch.no_grad()
    def track(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """One step of the running statistics for each graph, in order; :obj:`[B, F]` and :obj:`[B, 1]`."""
        if self.gather is not None:
            statistics = self.gather(torch.cat([mean, var, count], dim=1))
            mean, var, count = statistics.split([self.dim, self.dim, 1], dim=1)
        has_mean, has_var = (count > 0).squeeze(1), (count > 1).squeeze(1)
        self._average(self.running_mean, mean[has_mean])
        self._average(self.running_var, (var * (count / (count - 1).clamp(min=1)))[has_var])

    def _average(self, running: Tensor, new: Tensor) -> None:
        """Exponential moving average over the rows of ``new``, the last one with the largest weight.

        With a momentum of 1, that of statistics that are re-estimated, their mean.
        """
        if self.momentum == 1 and new.size(0):
            running.copy_(new.mean(0))
            return
        steps_after = torch.arange(new.size(0) - 1, -1, -1, device=new.device, dtype=new.dtype)
        share = self.momentum * (1 - self.momentum) ** steps_after
        running.copy_(running * (1 - self.momentum) ** new.size(0) + share @ new)


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
    """The identity."""

    def reset_parameters(self) -> None:
        """Nothing to reset."""

    def forward(self, x: Tensor, rows: Rows | None = None) -> Tensor:
        """Return ``x``."""
        return x


RowNorm = BatchNorm | LayerNorm | NoNorm


def make_norm(name: str, dim: int) -> RowNorm:
    """The normalisation ``name`` (one of :data:`NORMS`) of rows of width ``dim``."""
    check_name("norm", name, NORMS)
    if name == "batch":
        return BatchNorm(dim)
    if name == "graph":
        return GraphNorm(dim)
    return LayerNorm(dim) if name == "layer" else NoNorm()


def has_own_bias(name: str) -> bool:
    """Whether the norm cancels any constant that the linear map before it adds."""
    return name in ("batch", "graph")


def normalised(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    multiplicity: Tensor | None = None,
    reduce: Exchange | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows [R, F] normalised over all of them, and their mean and variance [1, F] and count [1, 1].

    ``reduce`` sums a tensor over all processes: it is called twice, and once in the backward pass.
    """
    return _Normalise.apply(x, weight, bias, multiplicity, None, 1, eps, reduce)


class _Normalise(torch.autograd.Function):
    """Weighted batch norm of each group of rows; also mean and variance [G, F] and count [G, 1], float64."""

    @staticmethod
    def forward(ctx, x, weight, bias, multiplicity, group, num_groups, eps, reduce):  # type: ignore[no-untyped-def]
        dtype = torch.promote_types(x.dtype, torch.float32)
        rows, w = x.to(dtype), None
        count = x.new_full((1, 1), x.size(0), dtype=torch.float64)
        if multiplicity is not None or group is not None:
            w = x.new_ones(x.size(0), 1, dtype=dtype)
            w = w if multiplicity is None else multiplicity.to(dtype).unsqueeze(1)
            count = _sum(w, group, num_groups)
        first = _sum(rows if w is None else rows * w, group, num_groups)
        if reduce is not None:
            count, first = reduce(torch.cat([count, first], dim=1)).split([1, first.size(1)], dim=1)
        total = count.clamp(min=1e-300)
        mean = first / total
        centred = rows - _of(mean.to(dtype), group)
        second = _sum(centred.square() if w is None else centred.square() * w, group, num_groups)
        var = (second if reduce is None else reduce(second)) / total
        invstd = (var + eps).rsqrt()
        y = torch.addcmul(bias.to(dtype), centred, _of((weight.double() * invstd).to(dtype), group))
        ctx.save_for_backward(x, weight, mean, invstd, total, w, group)
        ctx.num_groups, ctx.reduce = num_groups, reduce
        ctx.mark_non_differentiable(mean, var, count)
        return y.to(x.dtype), mean, var, count

    @staticmethod
    @first_derivatives_of_norms
    def backward(ctx, grad, *_):  # type: ignore[no-untyped-def]
        x, weight, mean, invstd, total, w, group = ctx.saved_tensors
        dtype = torch.promote_types(x.dtype, torch.float32)
        g = grad.to(dtype)
        x_hat = (x.to(dtype) - _of(mean.to(dtype), group)) * _of(invstd.to(dtype), group)
        own = sums = torch.cat([_sum(t, group, ctx.num_groups) for t in (g, g * x_hat)], dim=1)  # [G, 2 F]
        if ctx.reduce is not None:  # the gradients of the parameters stay those of this process
            sums = ctx.reduce(own)
        sum_g, sum_gx = (sums / total).chunk(2, dim=1)
        shared = torch.addcmul(_of(sum_g.to(dtype), group), x_hat, _of(sum_gx.to(dtype), group))
        scale = _of((weight.double() * invstd).to(dtype), group)
        grad_x = (g - (shared if w is None else shared * w)) * scale
        grad_bias, grad_weight = own.sum(0).to(weight.dtype).chunk(2)
        return grad_x.to(x.dtype), grad_weight, grad_bias, *[None] * 5


def _sum(x: Tensor, group: Tensor | None, num_groups: int) -> Tensor:
    """Sums over the rows of each group in float64, :obj:`[G, F]`."""
    if group is None:
        return x.sum(0, keepdim=True, dtype=torch.float64)
    return x.new_zeros(num_groups, x.size(1), dtype=torch.float64).index_add_(0, group, x.double())


def _of(statistic: Tensor, group: Tensor | None) -> Tensor:
    """The statistic of each row's group."""
    return statistic if group is None else statistic[group]
