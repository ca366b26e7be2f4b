r"""The GIN of SignNet: :math:`X' = \mathrm{MLP}(X + A X)`, with batch norm and ReLU between the layers.

Rows are pairs (node, slot), all real, so a batch norm never sees padding.
"""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn

from graphgps_pearl.encoders.mlp import mlp
from graphgps_pearl.pearl import graph_shift_operator


class GIN(nn.Module):
    """``layers`` GIN layers ``dim_in -> hidden -> ... -> dim_out``, each with an MLP of two linear maps.

    Args:
        dim_in: Width of the input rows.
        hidden: Width between the layers and inside the MLPs.
        dim_out: Width of the output rows.
        layers: Number of layers, at least 1.
    """

    def __init__(self, dim_in: int, hidden: int, dim_out: int, layers: int) -> None:
        super().__init__()
        if layers < 1:
            raise ValueError(f"a GIN needs at least one layer, got {layers}")
        widths = [dim_in, *[hidden] * (layers - 1), dim_out]
        self.updates = nn.ModuleList(
            mlp(before, hidden, after, 2, last_act=i < layers - 1, norm=True)
            for i, (before, after) in enumerate(pairwise(widths))
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """[R, dim_in] to [R, dim_out]."""
        adjacency = graph_shift_operator("adjacency", edge_index, x.size(0), x.dtype)
        for update in self.updates:
            x = update(x + adjacency @ x)
        return x
