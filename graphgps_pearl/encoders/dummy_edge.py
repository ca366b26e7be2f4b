"""``DummyEdge``: one learned vector for every edge, for graphs without edge features."""

from __future__ import annotations

from torch import nn
from torch_geometric.data import Batch


class DummyEdgeEncoder(nn.Module):
    """``batch.edge_attr`` becomes [E, dim_emb], every row the same."""

    def __init__(self, dim_emb: int) -> None:
        super().__init__()
        self.encoder = nn.Embedding(1, dim_emb)

    def forward(self, batch: Batch) -> Batch:
        """Set ``batch.edge_attr``, whatever it was."""
        batch.edge_attr = self.encoder(batch.edge_index.new_zeros(batch.edge_index.size(1)))
        return batch
