"""Linear maps, by a kernel where that is faster."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.layers.kernels import compiled_layer
from graphgps_pearl.switches import kernels_enabled


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x W^T + b``: rows [N, F] by a weight [G, F] to [N, G]."""
    if kernels_enabled() and compiled_layer.serves_linear(x, weight, bias):
        return compiled_layer.linear(x, weight, bias)
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """torch's linear map; on a CPU in compiled code where that is faster."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., F] to [..., G]."""
        return linear(x, self.weight, self.bias)
