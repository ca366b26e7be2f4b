r"""`Graphormer <https://arxiv.org/abs/2106.05234>`_: attention whose logits know the shortest paths.

The bias of the pair (i, j) at distance d, with types t_1, ..., t_d of the edges along a shortest path:

.. math:: B_{ij} = b_d + \frac{1}{\max(d, 1)} \sum_{k=1}^{D} e_{t_k} W_k

per head; D is the number of distances that are told apart, and as in GraphGPS t_k is 0 behind the end of a
path. A layer is pre-norm attention with this bias and a feed-forward block as wide as the nodes, both with
residual connections.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.contracts import AttentionBias
from graphgps_pearl.layers.attention import MultiheadAttention
from graphgps_pearl.layers.layout import Layout
from graphgps_pearl.layers.linear import Linear


class PathBias(nn.Module):
    """The bias above, and one for a graph token in front of every graph's nodes.

    Args:
        heads: H.
        num_distances: D; nodes without a path have distance D.
        num_edge_types: types of edges; 0 leaves the sum over the path out.
        token: whether each graph has a token, whose bias in both directions is one parameter per head.
    """

    def __init__(self, heads: int, num_distances: int, num_edge_types: int = 0, token: bool = False) -> None:
        super().__init__()
        self.distance = nn.Embedding(num_distances + 1, heads)
        self.edge = nn.Embedding(num_edge_types, heads) if num_edge_types else None
        self.step = nn.Parameter(torch.empty(num_distances, heads, heads)) if num_edge_types else None
        self.token = nn.Parameter(torch.empty(heads)) if token else None
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.02)

    def forward(self, distance: Tensor, path: Tensor | None, sizes: Tensor) -> Tensor:
        """The bias [B, H, n, n] by (graph, head, query, key), zero at padding; n counts the token.

        Args:
            distance: [P] of all pairs of every graph, row by row, P = Σ n_b².
            path: [P, D] types of edges; read where there are any.
            sizes: [B] numbers of nodes.
        """
        value = self.distance(distance)
        if self.edge is not None and self.step is not None and path is not None:
            steps = self.edge.weight @ self.step  # [D, types, H]
            entry = path + torch.arange(path.size(1), device=path.device) * steps.size(1)
            value = value + F.embedding_bag(entry, steps.flatten(0, 1), mode="sum") / distance.clamp(
                min=1
            ).unsqueeze(1)
        shift = int(self.token is not None)
        n = int(sizes.max()) + shift if len(sizes) else 0
        count = sizes.square()
        graph = torch.arange(len(sizes), device=sizes.device).repeat_interleave(count)
        within = torch.arange(len(graph), device=sizes.device) - (count.cumsum(0) - count)[graph]
        row, column = within // sizes[graph] + shift, within % sizes[graph] + shift
        dense = value.new_zeros(len(sizes) * n * n, value.size(1))
        dense = dense.index_copy(0, (graph * n + row) * n + column, value)
        bias = dense.view(len(sizes), n, n, -1).permute(0, 3, 1, 2)
        if self.token is None:
            return bias
        with_token = torch.zeros(n, n, dtype=torch.bool, device=bias.device)
        with_token[0], with_token[:, 0] = True, True
        return torch.where(with_token, self.token[:, None, None], bias)


class GraphormerLayer(nn.Module):
    """Attention and a feed-forward block.

    Args:
        dim: F.
        heads: H.
        dropout: after the attention and after the feed-forward block.
        attention_dropout: of the attention weights.
        mlp_dropout: inside the feed-forward block.
    """

    # Which part of the parameter budget each child belongs to.
    parts: ClassVar[dict[str, str]] = {
        "input_norm": "attention",
        "attention": "attention",
        "mlp": "feed-forward",
    }

    def __init__(
        self,
        dim: int,
        heads: int,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        mlp_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.attention = MultiheadAttention(dim, heads, attention_dropout)
        self.input_norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)
        self.mlp = nn.Sequential(
            nn.LayerNorm(dim),
            Linear(dim, dim),
            nn.GELU(),
            nn.Dropout(mlp_dropout),
            Linear(dim, dim),
            nn.Dropout(dropout),
        )

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        layout: Layout,
        attn_bias: Tensor | AttentionBias | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Nodes [N, F] to the same; edges are not read."""
        x = x + self.dropout(self.attention(self.input_norm(x), layout, attn_bias))
        return x + self.mlp(x), edge_attr
