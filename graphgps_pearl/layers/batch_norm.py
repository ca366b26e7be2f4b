"""PyG's batch norm in one call of torch's function."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import norm


class BatchNorm(norm.BatchNorm):
    """PyG's batch norm of rows [N, F]; a single row is normalised as in evaluation.

    Its state is PyG's, but ``num_batches_tracked`` is counted only where it is read, without a momentum: it
    would be one more operation for every norm.

    Args:
        dim: F.
        eps: added to the variance.
        momentum: share of a batch in the running statistics.
    """

    def __init__(self, dim: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__(dim, eps, momentum, allow_single_element=True)

    def forward(self, x: Tensor) -> Tensor:
        """[N, F] to [N, F]."""
        module = self.module
        # Another class runs over several processes; without a momentum (update_bn) batches are counted.
        if type(module) is not nn.BatchNorm1d or module.momentum is None:
            return super().forward(x)
        statistics = module.running_mean, module.running_var, module.weight, module.bias
        training = module.training
        if x.size(0) <= 1:  # not a part of the expression above: torch.compile needs a bool
            training = False
        return F.batch_norm(x, *statistics, training, module.momentum, module.eps)
