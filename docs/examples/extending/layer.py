"""A message-passing layer in one file, for ``model.type: custom_gnn`` with ``gnn.layer_type: meanconv``."""

from typing import Any

from torch import nn
from torch_geometric.data import Batch
from torch_geometric.graphgym.models.layer import LayerConfig
from torch_geometric.graphgym.register import register_layer
from torch_geometric.nn import SAGEConv


@register_layer("meanconv")
class MeanConv(nn.Module):
    """Mean over the neighbours; takes and gives a batch, as GraphGym's layers do."""

    def __init__(self, layer_config: LayerConfig, **kwargs: Any) -> None:
        super().__init__()
        self.conv = SAGEConv(layer_config.dim_in, layer_config.dim_out)

    def forward(self, batch: Batch) -> Batch:
        """Nodes [N, dim_in] to [N, dim_out]."""
        batch.x = self.conv(batch.x, batch.edge_index)
        return batch
