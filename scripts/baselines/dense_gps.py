"""GPS attention as GraphGPS computes it: all graphs padded to the largest, torch's attention with dropout."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.layers import Layout, MultiheadAttention


class DenseAttention(MultiheadAttention):
    """The same weights and the same result; all B·n² scores are computed."""

    def forward(self, x: Tensor, layout: Layout, bias: object = None) -> Tensor:
        """Attend among packed nodes [N, F]."""
        qkv = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        qkv = qkv.view(-1, 3, self.heads, self.dim // self.heads)
        query, key, value = layout.to_dense(qkv).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=layout.key_mask,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.out_proj(layout.to_packed(heads.transpose(1, 2)).flatten(1))


def use_dense_attention(network: nn.Module) -> nn.Module:
    """Make every softmax attention of a network a dense one."""
    for module in network.modules():
        if type(module) is MultiheadAttention:
            module.__class__ = DenseAttention
    return network
