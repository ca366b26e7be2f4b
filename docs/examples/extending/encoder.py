"""An encoding in one file: its config group and its class. Named ``LinearNode+Degree``, it is on."""

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.graphgym.register import register_node_encoder
from torch_geometric.utils import degree

from graphgps_pearl import config
from graphgps_pearl.encoders import PosEncEncoder

config.add_group(
    "posenc_Degree",
    {
        "enable": config.Key(False, "Set by naming the encoding."),
        "dim_pe": config.Key(8, "Columns of the encoding.", min=1),
        "pass_as_var": config.Key(False, "Also store the encoding as batch.pe_Degree."),
        "max_degree": config.Key(16, "Degrees above it are treated alike.", min=1),
    },
    "Degree: an embedding of each node's degree.",
)


@register_node_encoder("Degree")
class DegreeEncoder(PosEncEncoder):
    """An embedding of each node's degree."""

    name = "Degree"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> nn.Module:
        """Read the config group."""
        return nn.Embedding(settings.max_degree + 1, settings.dim_pe)

    def encode(self, batch: Batch) -> Tensor:
        """[N, dim_pe]."""
        degrees = degree(batch.edge_index[1], batch.num_nodes, dtype=torch.long)
        return self.encoding(degrees.clamp(max=self.encoding.num_embeddings - 1))
