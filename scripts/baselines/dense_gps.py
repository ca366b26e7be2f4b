"""GPS as GraphGPS computes it: every layer pads all graphs to the largest one and lets torch's attention run
on the padding too. Plain modules throughout, nothing of ours inside: what makes the layers of this project
faster leaves the baseline as it is.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINEConv
from torch_geometric.utils import scatter, to_dense_batch


class PlainGatedGCN(nn.Module):
    """GatedGCN with residual edges: five linear maps, two sums over the neighbours, two batch norms."""

    def __init__(self, dim: int, dropout: float) -> None:
        super().__init__()
        self.own, self.sent, self.at_target, self.at_source, self.of_edge = (
            nn.Linear(dim, dim) for _ in range(5)
        )
        self.norm_nodes, self.norm_edges = nn.BatchNorm1d(dim), nn.BatchNorm1d(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> tuple[Tensor, Tensor]:
        """The update of the nodes [N, F], and the edges [E, F] of the next layer (also behind the last)."""
        source, target = edge_index
        logit = self.at_target(x)[target] + self.at_source(x)[source] + self.of_edge(edge_attr)
        gate = torch.sigmoid(logit)
        above = scatter(gate * self.sent(x)[source], target, 0, x.size(0), "sum")
        below = scatter(gate, target, 0, x.size(0), "sum")
        update = torch.relu(self.norm_nodes(self.own(x) + above / (below + 1e-6)))
        return update, edge_attr + self.dropout(torch.relu(self.norm_edges(logit)))


class DenseGPSLayer(nn.Module):
    """One GPS layer with batch norm: local model beside dense attention, then the feed-forward block.

    Args:
        dim: F, the width.
        local: ``GINE`` or ``CustomGatedGCN``.
        heads: attention heads.
        dropout: after local model, attention and both feed-forward layers.
        attn_dropout: of the attention weights.
    """

    def __init__(self, dim: int, local: str, heads: int, dropout: float, attn_dropout: float) -> None:
        super().__init__()
        if local not in ("GINE", "CustomGatedGCN"):
            raise ValueError(f"the baseline has GINE and CustomGatedGCN, not {local}")
        self.local: nn.Module
        if local == "GINE":
            self.local = GINEConv(nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim)))
        else:
            self.local = PlainGatedGCN(dim, dropout)
        self.attention = nn.MultiheadAttention(dim, heads, dropout=attn_dropout, batch_first=True)
        self.norm_local, self.norm_attention, self.norm = (nn.BatchNorm1d(dim) for _ in range(3))
        self.dropout = nn.Dropout(dropout)
        self.feed_forward = nn.Sequential(
            nn.Linear(dim, 2 * dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(2 * dim, dim),
            nn.Dropout(dropout),
        )

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, index: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Packed nodes [N, F] with the number of their graph [N], and edges [E, F], to the same."""
        if isinstance(self.local, PlainGatedGCN):
            update, edge_attr = self.local(x, edge_index, edge_attr)
        else:
            update = self.local(x, edge_index, edge_attr)
        near = self.norm_local(x + self.dropout(update))
        dense, mask = to_dense_batch(x, index)  # [B, n, F], [B, n]
        attended, _ = self.attention(dense, dense, dense, key_padding_mask=~mask, need_weights=False)
        far = self.norm_attention(x + self.dropout(attended[mask]))
        x = near + far
        return self.norm(x + self.feed_forward(x)), edge_attr


class DenseGPS(nn.Module):
    """A network of such layers, between the encoder and the head that another network has.

    Args:
        cfg: the config; its group ``gt`` gives the layers.
        network: made from the same config by ``networks.build``.
    """

    def __init__(self, cfg: Any, network: Any) -> None:
        super().__init__()
        local, attention = cfg.gt.layer_type.split("+")
        if attention != "Transformer" or not cfg.gt.batch_norm or cfg.gnn.act != "relu":
            raise ValueError("the baseline has softmax attention, batch norm and ReLU")
        sizes = cfg.gt.dim_hidden, local, cfg.gt.n_heads, cfg.gt.dropout, cfg.gt.attn_dropout
        self.encoder, self.head = network.encoder, network.post_mp
        self.layers = nn.ModuleList(DenseGPSLayer(*sizes) for _ in range(cfg.gt.layers))

    def forward(self, batch: Any) -> tuple[Tensor, Tensor | None]:
        """A batch of graphs to (prediction, target); the batch itself stays as it was."""
        batch = self.encoder(copy.copy(batch))
        for layer in self.layers:
            batch.x, batch.edge_attr = layer(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
        return self.head(batch)
