r"""GatedGCN: message passing with a gate on every edge, and features on every edge.

For edges (j, i) with features e_ij, after `Residual Gated Graph ConvNets <https://arxiv.org/abs/1711.07553>`_:

.. math::
    \hat e_{ij} &= D x_i + E x_j + C e_{ij}, \qquad \eta_{ij} = \sigma(\hat e_{ij}) \, g(|p_i - p_j|^2) \\
    \hat x_i &= A x_i + \frac{\sum_j \eta_{ij} \odot B x_j}{\sum_j \eta_{ij} + 10^{-6}} \\
    x_i' &= \mathrm{act}(\mathrm{norm}(\hat x_i)), \qquad
    e_{ij}' = e_{ij} + \mathrm{act}(\mathrm{norm}(\hat e_{ij}))

The factor g is 1 unless the layer is told of an equivariant and stable encoding p.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphgps_pearl.layers.batch_norm import BatchNorm
from graphgps_pearl.layers.dropout import Dropout
from graphgps_pearl.layers.layout import Layout, wide_sum
from graphgps_pearl.layers.linear import Linear
from graphgps_pearl.layers.names import Activation, activation


class DistanceGate(nn.Module):
    r"""g(r) = sigmoid(w_2^T act(w_1 r + b_1) + b_2), the weight of a message by the distance it bridges.

    From `Equivariant and Stable Positional Encoding <https://openreview.net/forum?id=e95i1IHcWj>`_: distances
    between encodings are free of the signs and rotations that the encodings themselves are not.
    """

    def __init__(self, dim: int, act: Activation = "relu") -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(1, dim), activation(act), nn.Linear(dim, 1), nn.Sigmoid())

    def forward(self, distance: Tensor | None) -> Tensor:
        """[E, 1] squared distances to [E, 1] weights."""
        if distance is None:
            raise ValueError("this layer weighs messages by distance, and the layout of the batch has none")
        return self.mlp(distance)


class GatedGCN(nn.Module):
    """One GatedGCN layer; gives the update of the nodes (no residual, no dropout) and the new edge features.

    Args:
        dim: width of nodes and edges.
        act: activation.
        dropout: of the edge update. The caller treats the node update as that of any other convolution.
        residual: whether edges keep their features and add the update to them.
        update_edges: False for a network's last layer: its edges are not read, so there is nothing to
            normalise (2·dim parameters that would never get a gradient).
        equivstable_pe: whether messages are weighed by the distance of encodings, g above.
    """

    def __init__(
        self,
        dim: int,
        act: Activation = "relu",
        dropout: float = 0.0,
        residual: bool = True,
        update_edges: bool = True,
        equivstable_pe: bool = False,
    ) -> None:
        super().__init__()
        self.residual = residual
        # A, B, D, E side by side. Some of the biases are idle (A's goes into a batch norm; C's, D's and E's
        # are added up): they stay because GraphGPS counts them, and its budgets are ours.
        self.lin_nodes = Linear(dim, 4 * dim)
        self.lin_edges = Linear(dim, dim)
        self.gate = DistanceGate(dim, act) if equivstable_pe else None
        self.norm_nodes = BatchNorm(dim)
        self.act_nodes = activation(act)
        self.norm_edges = BatchNorm(dim) if update_edges else None
        self.act_edges = activation(act) if update_edges else None
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, layout: Layout
    ) -> tuple[Tensor, Tensor]:
        """Nodes [N, F] and edges [E, F] to their updates, same shapes."""
        source, target = edge_index
        own, sent, at_target, at_source = self.lin_nodes(x).chunk(4, dim=-1)
        logit = (
            at_target.index_select(0, target) + at_source.index_select(0, source) + self.lin_edges(edge_attr)
        )
        gate = logit.sigmoid()
        if self.gate is not None:
            gate = gate * self.gate(layout.distance)
        messages = torch.cat([gate * sent.index_select(0, source), gate], dim=-1)
        above, below = wide_sum(messages, target, x.size(0)).chunk(2, dim=-1)
        x = self.act_nodes(self.norm_nodes(own + (above / (below + 1e-6)).to(own.dtype)))
        if self.norm_edges is None or self.act_edges is None:
            return x, edge_attr
        update = self.dropout(self.act_edges(self.norm_edges(logit)))
        return x, edge_attr + update if self.residual else update
