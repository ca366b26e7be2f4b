"""Dropout, by a kernel where that is faster."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphgps_pearl.layers.kernels import dropout as kernel
from graphgps_pearl.switches import kernels_enabled


class Dropout(nn.Dropout):
    """torch's dropout; in training on a CPU from 16 random bits an entry."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same."""
        on_cpu = x.device.type == "cpu" and not torch.compiler.is_compiling()
        if self.training and 0 < self.p < 1 and on_cpu and kernels_enabled():
            return kernel.dropout(x, self.p)
        return super().forward(x)
