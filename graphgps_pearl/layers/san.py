r"""The layer of the `Spectral Attention Network <https://arxiv.org/abs/2106.03893>`_: attention with edge
features along the edges, and a weaker attention with weights of its own between all other pairs.

.. math::
    w_{ij} = \begin{cases}
        \exp(\langle q_i, k_j, e_{ij} \rangle / \sqrt d) / (1 + \gamma) & (j, i) \text{ an edge} \\
        \gamma \exp(\langle q'_i, k'_j, e' \rangle / \sqrt d) / (1 + \gamma) & \text{other pairs, } i \ne j
    \end{cases}
    \qquad
    h_i = \frac{\sum_j w_{ij} v_j}{\sum_j w_{ij} + 10^{-6}}

per head, where ⟨a, b, c⟩ sums a product of three, and exponents are cut to [-5, 5]. Then a linear map,
residual and norm, and a feed-forward block with residual and norm.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from graphgps_pearl.layers.gps_layer import Norm
from graphgps_pearl.layers.layout import Layout, wide_sum
from graphgps_pearl.layers.linear import Linear


class SANAttention(nn.Module):
    """The attention above.

    Args:
        dim: F, the width of nodes and edges; heads divide it.
        heads: H.
        full_graph: whether pairs without an edge attend too.
        gamma: their weight γ.
    """

    def __init__(self, dim: int, heads: int, full_graph: bool = True, gamma: float = 1e-5) -> None:
        super().__init__()
        self.heads, self.gamma = heads, gamma
        self.query, self.key, self.value, self.edge = (Linear(dim, dim, bias=False) for _ in range(4))
        self.other: nn.ModuleDict | None = None
        if full_graph:
            # GraphGPS shares the feature of a pair without an edge among the layers; here each has its own.
            self.no_edge = nn.Parameter(torch.randn(1, dim))
            names = ("query", "key", "edge")
            self.other = nn.ModuleDict({name: Linear(dim, dim, bias=False) for name in names})

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, layout: Layout) -> Tensor:
        """Nodes [N, F] and edges [E, F] to [N, F]."""
        source, target = edge_index
        q, k, v = (self._split(linear(x)) for linear in (self.query, self.key, self.value))
        e = self._split(self.edge(edge_attr))
        weight = _weight((q[target] * k[source] * e).sum(dim=-1), q.size(-1))  # [E, H]
        if self.other is not None:
            weight = weight / (1 + self.gamma)
        messages = weight.unsqueeze(-1) * v[source]
        total, sums = (wide_sum(part, target, x.size(0)) for part in (weight, messages))
        if self.other is not None:
            more, more_total = self._between_others(x, v, edge_index, layout)
            sums, total = sums + more, total + more_total
        return (sums / (total.unsqueeze(-1) + 1e-6)).to(v.dtype).flatten(1)

    def _between_others(
        self, x: Tensor, v: Tensor, edge_index: Tensor, layout: Layout
    ) -> tuple[Tensor, Tensor]:
        """Weighted sums [N, H, d] and sums of weights [N, H] over the pairs without an edge."""
        assert self.other is not None
        e = self._split(self.other["edge"](self.no_edge))
        q, k = self._split(self.other["query"](x)), self._split(self.other["key"](x)) * e
        dense_q, dense_k, dense_v = (
            layout.to_dense(part).transpose(1, 2) for part in (q, k, v)
        )  # [B, H, n, d]
        weight = _weight(dense_q @ dense_k.transpose(2, 3), q.size(-1)) * (self.gamma / (1 + self.gamma))
        weight = weight * self._no_edge_mask(edge_index, layout).unsqueeze(1)
        sums = layout.to_packed((weight @ dense_v).transpose(1, 2))
        return sums, layout.to_packed(weight.sum(dim=3).transpose(1, 2))

    @staticmethod
    def _no_edge_mask(edge_index: Tensor, layout: Layout) -> Tensor:
        """[B, n, n], true where row i may attend to column j: both exist, differ and have no edge (j, i)."""

        def compute() -> Tensor:
            n = layout.max_size
            real = torch.arange(n, device=edge_index.device) < layout.sizes.unsqueeze(1)
            mask = real.unsqueeze(2) & real.unsqueeze(1)
            mask.diagonal(dim1=1, dim2=2).fill_(False)
            first = layout.sizes.cumsum(0) - layout.sizes
            source, target = edge_index - first[layout.index[edge_index[0]]]
            mask[layout.index[edge_index[0]], target, source] = False
            return mask

        return layout.cached("pairs without an edge", edge_index, compute)

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1))


def _weight(products: Tensor, width: int) -> Tensor:
    return (products / width**0.5).clamp(-5, 5).exp()


class _NodeNorm(nn.LayerNorm):
    """Layer norm of every node by itself."""

    def forward(self, x: Tensor, layout: Layout | None = None) -> Tensor:
        return super().forward(x)


class SANLayer(nn.Module):
    """Attention and a feed-forward block, each with residual connection and norm.

    Args:
        dim: F.
        heads: H.
        full_graph: see :class:`SANAttention`.
        gamma: see :class:`SANAttention`.
        dropout: after the attention and inside the feed-forward block.
        norm: ``batch``, ``layer`` (of each node by itself, as in GraphGPS's SAN; GPS layers normalise over a
            graph) or ``none``.
    """

    # Which part of the parameter budget each child belongs to.
    parts: ClassVar[dict[str, str]] = {
        "attention": "attention",
        "project": "attention",
        "norm_attention": "attention",
        "feed_forward": "feed-forward",
        "norm": "feed-forward",
    }

    def __init__(
        self,
        dim: int,
        heads: int,
        full_graph: bool = True,
        gamma: float = 1e-5,
        dropout: float = 0.0,
        norm: str = "batch",
    ) -> None:
        super().__init__()
        self.attention = SANAttention(dim, heads, full_graph, gamma)
        self.project = nn.Sequential(nn.Dropout(dropout), Linear(dim, dim))
        self.feed_forward = nn.Sequential(
            Linear(dim, 2 * dim), nn.ReLU(), nn.Dropout(dropout), Linear(2 * dim, dim)
        )
        self.norm_attention, self.norm = (
            _NodeNorm(dim) if norm == "layer" else Norm(dim, norm) for _ in range(2)
        )

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, layout: Layout
    ) -> tuple[Tensor, Tensor]:
        """Nodes [N, F] and edges [E, F] to the same; edges stay as they are."""
        x = self.norm_attention(x + self.project(self.attention(x, edge_index, edge_attr, layout)), layout)
        return self.norm(x + self.feed_forward(x), layout), edge_attr
