r"""Prediction heads: an MLP on each node, on the pooled nodes of a graph, or for pairs of nodes.

Those for graphs differ in the MLP, and have the parameters that GraphGym's and GraphGPS's heads of the same
name have:

- ``graph``: hidden layers of one width, each relu(W z + b) scaled to unit length, as GraphGym's MLP does;
- ``san_graph``: two hidden layers, the width halved each time;
- ``mlp_graph``: hidden layers as wide as the input, dropout before every linear layer;
- ``graphormer_graph``: layer norm of the nodes before the pooling, then one linear layer;
- ``ogb_code_graph``: one linear layer for each of five words.

``node`` (in GraphGPS also ``inductive_node``) is the MLP of ``graph`` without the pooling; ``edge`` (also
``inductive_edge``) multiplies what it gives for the two nodes of a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import Activation, activation
from graphgps_pearl.layers.layout import wide
from graphgps_pearl.negatives import with_negatives
from graphgps_pearl.networks.pooling import Pool


class UnitRows(nn.Module):
    """z / |z| for every row z."""

    def forward(self, x: Tensor) -> Tensor:
        """[B, F] to [B, F]."""
        return F.normalize(x, p=2.0, dim=1)


def graph_mlp(dim_in: int, dim_out: int, num_layers: int, dim_hidden: int) -> nn.Sequential:
    """The MLP of the ``graph`` head: ``num_layers`` linear layers, all but the last ``dim_hidden`` wide."""
    layers: list[nn.Module] = []
    for _ in range(num_layers - 1):
        layers += [nn.Linear(dim_in, dim_hidden), nn.ReLU(), UnitRows()]
        dim_in = dim_hidden
    return nn.Sequential(*layers, nn.Linear(dim_in, dim_out))


def san_mlp(dim_in: int, dim_out: int, act: Activation = "relu", num_hidden: int = 2) -> nn.Sequential:
    """The MLP of the ``san_graph`` head: dim_in → dim_in/2 → dim_in/4 → dim_out."""
    if dim_in >> num_hidden == 0:
        raise ConfigError(f"gnn.head: san_graph halves the width twice, and gnn.dim_inner is only {dim_in}")
    layers: list[nn.Module] = []
    for _ in range(num_hidden):
        layers += [nn.Linear(dim_in, dim_in // 2), activation(act)]
        dim_in //= 2
    return nn.Sequential(*layers, nn.Linear(dim_in, dim_out))


def plain_mlp(dim_in: int, dim_out: int, num_layers: int, act: Activation, dropout: float) -> nn.Sequential:
    """The MLP of the ``mlp_graph`` head: ``num_layers`` linear layers with dropout before each."""
    layers: list[nn.Module] = []
    for _ in range(num_layers - 1):
        layers += [nn.Dropout(dropout), nn.Linear(dim_in, dim_in), activation(act)]
    return nn.Sequential(*layers, nn.Dropout(dropout), nn.Linear(dim_in, dim_out))


class GraphHead(nn.Module):
    """Pooling and an MLP.

    Args:
        pool: nodes to graphs: ``add``, ``mean``, ``max``, several joined by ``+``, or functions that are
            called as ``pool(x, index)``; k of them give k F columns.
        mlp: [B, k F] to [B, dim_out].
        norm: of the nodes before they are pooled.
    """

    def __init__(
        self,
        pool: str | Callable[..., Tensor] | Sequence[Callable[..., Tensor]],
        mlp: nn.Module,
        norm: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.norm, self.pool, self.mlp = norm, Pool(pool), mlp

    def predict(self, x: Tensor, index: Tensor, num_graphs: int) -> Tensor:
        """Nodes [N, F], their graphs [N] and the number of graphs to [B, dim_out]."""
        x = x if self.norm is None else self.norm(x)
        return self.mlp(self.pool(x, index, num_graphs))

    def forward(self, batch: Any) -> tuple[Tensor, Tensor | None]:
        """A batch whose ``x`` is [N, F] to (prediction [B, dim_out], ``batch.y``)."""
        return self.predict(batch.x, batch.batch, batch.num_graphs), batch.y


class NameHead(GraphHead):
    """The words of a graph's name, ogbg-code2: logits of five words, each by a linear map of its own."""

    def forward(self, batch: Any) -> tuple[Tensor, Tensor | None]:
        """Predictions [B, 5 * words], and ``batch.y`` [B, 5] followed by ``batch.y_words``, which only the
        metric reads, as -2 - number: no label is counted where a number is negative."""
        pred, y = super().forward(batch)
        return pred, None if y is None else torch.cat((y, -2 - batch.y_words), dim=1)


class NodeHead(nn.Module):
    """An MLP on every node.

    Args:
        mlp: [N, F] to [N, dim_out].
    """

    def __init__(self, mlp: nn.Module) -> None:
        super().__init__()
        self.mlp = mlp

    def forward(self, batch: Any) -> tuple[Tensor, Tensor | None]:
        """A batch whose ``x`` is [N, F] to (prediction [N, dim_out], ``batch.y``)."""
        return self.mlp(batch.x), batch.y


class EdgeHead(nn.Module):
    """The logit of a pair of nodes is the inner product z_i · z_j of what an MLP makes of each.

    A batch has pairs ``edge_index_labeled`` [2, L] with ``edge_label`` [L], 1 for an edge to be found and 0
    for none. For the ranking metrics, every edge (i, j) is ranked by its logit among all pairs (i, k) of its
    graph.

    Args:
        mlp: [N, F] to [N, F].
        cosine: whether the vectors are scaled to unit length.
        resample: whether the pairs without an edge are drawn anew in every training step.
    """

    def __init__(self, mlp: nn.Module, cosine: bool = False, resample: bool = False) -> None:
        super().__init__()
        self.mlp, self.cosine, self.resample = mlp, cosine, resample

    def forward(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Predictions [L, 3] and labels [L, 1]: logit, rank of an edge (0 for no edge), and its share of its
        graph's edges."""
        z = self.mlp(batch.x)
        z = F.normalize(z, dim=1) if self.cosine else z
        pairs, label = batch.edge_index_labeled, batch.edge_label.float()
        sizes = torch.bincount(batch.batch, minlength=batch.num_graphs)
        if self.training and self.resample:
            pairs, label = with_negatives(pairs[:, label > 0.5], batch.batch, sizes)
        z = wide(z)  # bfloat16 cannot hold a rank above 256
        logit = (z[pairs[0]] * z[pairs[1]]).sum(dim=1)
        rank, share = torch.zeros_like(logit), torch.zeros_like(logit)
        edges = (label > 0.5).nonzero().flatten()
        with torch.no_grad():
            rank[edges] = ranks(z, pairs[:, edges], batch.batch, sizes).to(rank.dtype)
            graph = batch.batch[pairs[0, edges]]
            share[edges] = 1 / torch.bincount(graph, minlength=len(sizes))[graph].to(share.dtype)
        return torch.stack((logit, rank, share), dim=1), label.view(-1, 1)


def ranks(z: Tensor, edges: Tensor, index: Tensor, sizes: Tensor) -> Tensor:
    """The rank [P] of z_i · z_j for each edge (i, j) [2, P] among z_i · z_k over the nodes k of its graph;
    equal ones share their mean rank. ``index`` [N] is every node's graph, ``sizes`` [B] the graphs' numbers
    of nodes."""
    graph = index[edges[0]]
    count = sizes[graph]
    owner = torch.arange(edges.size(1), device=z.device).repeat_interleave(count)
    first = sizes.cumsum(0) - sizes
    within = torch.arange(len(owner), device=z.device) - (count.cumsum(0) - count)[owner]
    other = (z[edges[0, owner]] * z[first[graph[owner]] + within]).sum(dim=1)
    own = (z[edges[0]] * z[edges[1]]).sum(dim=1)[owner]
    above = torch.zeros(edges.size(1), device=z.device, dtype=z.dtype)
    above.index_add_(0, owner, (other > own).to(z.dtype))
    equal = torch.zeros_like(above).index_add_(0, owner, (other == own).to(z.dtype))
    return 1 + above + (equal - 1).clamp(min=0) / 2
