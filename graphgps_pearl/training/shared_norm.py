r"""Batch normalisation over the rows of all processes.

Every process holds some rows :math:`x_i` (with multiplicities :math:`w_i` in B-PEARL). Mean and variance are
those of all rows together,

.. math::
    W = \sum_p \sum_i w_i, \quad \mu = \tfrac1W \sum_p \sum_i w_i x_i, \quad
    \sigma^2 = \tfrac1W \sum_p \sum_i w_i (x_i - \mu)^2

with :math:`\sum_p` over the processes, forwards and backwards: two processes with half a batch each are then
one process with the whole batch. torch's ``SyncBatchNorm`` does this on GPUs only, and knows no
multiplicities.

:func:`share_norms` turns the norms of a network that is built into these; parameters, buffers and their names
stay what they are.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.norm import BatchNorm as GraphBatchNorm

from graphgps_pearl.pearl import norm as pearl_norm
from graphgps_pearl.pearl.rows import Rows
from graphgps_pearl.training.processes import gather


class _Sum(torch.autograd.Function):
    """The sum over all processes; its gradient is the sum of their gradients."""

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        total = x.clone()
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        total = grad.clone()
        dist.all_reduce(total)
        return total


def shared_statistics(x: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows [R, F] and multiplicities [R] of this process -> rows minus mean [R, F], and over all processes
    the mean [F], the (biased) variance [F] and the count []; the sums are float64."""
    w = x.new_ones(x.size(0), 1) if weight is None else weight.to(x.dtype).unsqueeze(1)
    count = _Sum.apply(w.sum(dtype=torch.float64))
    safe = count.clamp(min=1e-300)
    mean = _Sum.apply((x * w).sum(0, dtype=torch.float64)) / safe
    centred = x - mean.to(x.dtype)
    var = _Sum.apply((centred.square() * w).sum(0, dtype=torch.float64)) / safe
    return centred, mean, var, count


class SharedBatchNorm1d(nn.BatchNorm1d):
    """torch's batch normalisation of [R, F] or [R, F, L], in training over all processes.

    A single row has no variance: it is normalised by the running statistics.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x``."""
        if not self.training or self.running_mean is None or self.running_var is None:
            return super().forward(x)
        rows = x if x.dim() == 2 else x.transpose(1, 2).flatten(0, 1)
        wide = rows.to(torch.promote_types(x.dtype, torch.float32))
        centred, mean, var, count = shared_statistics(wide)
        if count <= 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        self._track(mean, var * (count / (count - 1)))
        y = centred * (var + self.eps).rsqrt().to(centred.dtype)
        if self.affine:
            y = y * self.weight + self.bias
        y = y.to(x.dtype)
        return y if x.dim() == 2 else y.view(x.size(0), x.size(2), x.size(1)).transpose(1, 2)

    @torch.no_grad()
    def _track(self, mean: Tensor, var: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        self.num_batches_tracked += 1
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
        self.running_var.lerp_(var.to(self.running_var.dtype), share)


class SharedGraphBatchNorm(GraphBatchNorm):
    """PyG's batch normalisation; whether there is a single row only is decided over all processes."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x`` [R, F]."""
        return self.module(x)


class SharedRowNorm(pearl_norm.BatchNorm):
    """PEARL's batch normalisation of rows with multiplicities, in training over all processes."""

    def forward(self, x: Tensor, rows: Rows | None = None, relu: bool = False) -> Tensor:
        """Normalise ``x`` [R, F], and apply ReLU if asked to."""
        y = self._shared(x, rows) if self.training else super().forward(x, rows)
        return F.relu(y) if relu else y

    def _shared(self, x: Tensor, rows: Rows | None) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred, mean, var, count = shared_statistics(wide, None if rows is None else rows.weight)
        self.track(mean.unsqueeze(0), var.unsqueeze(0), count.view(1, 1))
        scale = self.weight.double() * (var + self.eps).rsqrt()
        return torch.addcmul(self.bias.to(wide.dtype), centred, scale.to(wide.dtype)).to(x.dtype)


class SharedGraphNorm(pearl_norm.GraphNorm):
    """PEARL's normalisation graph by graph: each graph is on one process, the running statistics see all."""

    def track(self, mean: Tensor, var: Tensor, count: Tensor) -> None:
        """Move the running statistics by one step for each graph of all processes."""
        parts = gather((mean.cpu(), var.cpu(), count.cpu()))
        # Graph i of the whole batch is the (i // P)-th of process i % P.
        longest = max(len(part[0]) for part in parts)
        order = [(part, i) for i in range(longest) for part in parts if i < len(part[0])]
        joined = [torch.stack([part[k][i] for part, i in order]).to(mean.device) for k in range(3)]
        super().track(*joined)


_SHARED: dict[type[nn.Module], type[nn.Module]] = {
    nn.BatchNorm1d: SharedBatchNorm1d,
    GraphBatchNorm: SharedGraphBatchNorm,
    pearl_norm.BatchNorm: SharedRowNorm,
    pearl_norm.GraphNorm: SharedGraphNorm,
}


def share_norms(network: nn.Module) -> None:
    """Make every batch norm of a network run over all processes, in place."""
    for module in network.modules():
        shared = _SHARED.get(type(module))
        if shared is not None:
            # The same parameters and buffers under the same names: only what is done with them changes.
            module.__class__ = shared
