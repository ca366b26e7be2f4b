r"""Batch normalisation over the rows of all processes.

Every process holds some rows :math:`x_i` (with multiplicities :math:`w_i` in B-PEARL). Mean and variance are
those of all rows together,

.. math::
    W = \sum_p \sum_i w_i, \quad \mu = \tfrac1W \sum_p \sum_i w_i x_i, \quad
    \sigma^2 = \tfrac1W \sum_p \sum_i w_i (x_i - \mu)^2

with :math:`\sum_p` over the processes, forwards and backwards: two processes with half a batch each are then
one process with the whole batch. torch's ``SyncBatchNorm`` does this on GPUs only, and knows no
multiplicities.

:func:`share_norms` does this for a network that is built; parameters, buffers and their names stay as they
are.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.norm import BatchNorm as GraphBatchNorm

from graphgps_pearl.pearl import norm as pearl_norm
from graphgps_pearl.training.processes import gather


def _all_reduce(x: Tensor) -> Tensor:
    """The sum over all processes."""
    total = x.clone()
    dist.all_reduce(total)
    return total


class SharedBatchNorm1d(nn.BatchNorm1d):
    """torch's batch normalisation of [R, F] or [R, F, L], in training over all processes.

    A single row has no variance: it is normalised by the running statistics.
    """

    @classmethod
    def of(cls, norm: nn.BatchNorm1d) -> SharedBatchNorm1d:
        """The same norm over all processes: the same parameters and buffers, not copies."""
        shared = cls(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
        for name, parameter in norm.named_parameters():
            setattr(shared, name, parameter)
        for name, buffer in norm.named_buffers():
            setattr(shared, name, buffer)
        return shared.train(norm.training)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise ``x``."""
        if not self.training or self.running_mean is None or self.running_var is None:
            return super().forward(x)
        rows = x if x.dim() == 2 else x.transpose(1, 2).flatten(0, 1)
        weight = rows.new_ones(self.num_features) if self.weight is None else self.weight
        bias = rows.new_zeros(self.num_features) if self.bias is None else self.bias
        y, mean, var, count = pearl_norm.normalised(rows, weight, bias, self.eps, reduce=_all_reduce)
        if count <= 1:
            return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps)
        self._track(mean[0], (var * (count / (count - 1)))[0])
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


def _in_batch_order(statistics: Tensor) -> Tensor:
    """The rows of all processes, [graphs, columns]; graph i of the batch is on process i % P."""
    parts = gather(statistics.cpu())
    longest = max(len(part) for part in parts)
    rows = [part[i] for i in range(longest) for part in parts if i < len(part)]
    return torch.stack(rows).to(statistics.device)


def share_norms(network: nn.Module) -> None:
    """Make every batch norm of a network run over all processes, in place.

    PEARL's norms get a hook. Those of torch have none, and are replaced in their parents.
    """
    made: dict[nn.Module, nn.Module] = {}  # one for each, also where two parents share it
    for module in list(network.modules()):
        if isinstance(module, pearl_norm.GraphNorm):  # a graph is on one process; running statistics see all
            module.gather = _in_batch_order
        elif isinstance(module, pearl_norm.BatchNorm):
            module.reduce = _all_reduce
        elif isinstance(module, GraphBatchNorm):
            module.allow_single_element = False  # the norm inside decides that, over all processes
        for name, child in list(module.named_children()):
            if type(child) is nn.BatchNorm1d:
                if child not in made:
                    made[child] = SharedBatchNorm1d.of(child)
                setattr(module, name, made[child])
