r"""``RandomID``: one random number per node, :math:`p_v = w\, q_v + b`.

The plainest way to tell nodes apart, and what R-PEARL is with one sample and no network. In training the
numbers are drawn again for every batch; in evaluation they come from a fixed table, read at the node's
position in its own graph, so that predictions can be repeated and do not depend on the batch. In parts of one
large graph a node's number in that graph stands for its position, as in R-PEARL: else the node that a
neighbourhood belongs to, which comes first, would have the same number in all of them.
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
        self,
        edge_index: Tensor,
        batch: Tensor | None,
        num_nodes: int,
        ids: Tensor | None = None,
        node_id: Tensor | None = None,
    ) -> Tensor:
        """[N, dim_pe]; ``ids`` [N, 1] override the draw, ``node_id`` [N] are numbers in one large graph."""
        if ids is None:
            graphs = check_graphs(edge_index, batch, num_nodes)
            key = make_key(self.eval_seed)
            if self.training:
                seed = torch.randint(2**63 - 1, ())
                key = make_key(seed, graphs.graph) if node_id is None else make_key(seed)
            position = graphs.position if node_id is None else node_id
            ids = draw_samples(self.distribution, key, position, 0, 1, self.linear.weight.dtype)
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
        node_id = batch.n_id if "n_id" in batch else None
        return self.encoding(batch.edge_index, batch.batch, batch.num_nodes, node_id=node_id)
