r"""``RandomID``: one random number per node, :math:`p_v = w\, q_v + b`.

The plainest way to tell nodes apart, and what R-PEARL is with one sample and no network. In training the
numbers are drawn again for every batch; in evaluation they come from a fixed table, read at the node's
position in its own graph, so that predictions can be repeated and do not depend on the batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from graphgps_pearl.encoders.base import PosEncEncoder
from graphgps_pearl.pearl.graphs import check_graphs
from graphgps_pearl.pearl.signals import draw_samples, make_key


class RandomID(nn.Module):
    """Random identifiers as a node encoding [N, dim_pe].

    Args:
        dim_pe: Width of the encoding.
        distribution: of the identifiers, as in :mod:`graphgps_pearl.pearl.signals`.
        eval_seed: Which table is read in evaluation.
    """

    def __init__(self, dim_pe: int, distribution: str = "gaussian", eval_seed: int = 0) -> None:
        super().__init__()
        self.distribution, self.eval_seed = distribution, eval_seed
        self.linear = nn.Linear(1, dim_pe)

    def forward(
        self, edge_index: Tensor, batch: Tensor | None, num_nodes: int, ids: Tensor | None = None
    ) -> Tensor:
        """[N, dim_pe]; ``ids`` [N, 1] override the draw."""
        if ids is None:
            graphs = check_graphs(edge_index, batch, num_nodes)
            seed = (torch.randint(2**63 - 1, ()), graphs.graph) if self.training else (self.eval_seed,)
            ids = draw_samples(
                self.distribution, make_key(*seed), graphs.position, 0, 1, self.linear.weight.dtype
            )
        return self.linear(ids)


class RandomIDNodeEncoder(PosEncEncoder):
    """Random identifiers for GraphGym; config group ``posenc_RandomID``."""

    name = "RandomID"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> RandomID:
        """Read ``posenc_RandomID``."""
        return RandomID(settings.dim_pe, settings.distribution, settings.eval_seed)

    def encode(self, batch: Batch) -> Tensor:
        """Draw or look up the identifiers."""
        return self.encoding(batch.edge_index, batch.batch, batch.num_nodes)
