r"""Prediction heads: an MLP on each node, or on the pooled nodes of a graph.

Those for graphs differ in the MLP, and have the parameters that GraphGym's and GraphGPS's heads of the same
name have:

- ``graph``: hidden layers of one width, each relu(W z + b) scaled to unit length, as GraphGym's MLP does;
- ``san_graph``: two hidden layers, the width halved each time;
- ``mlp_graph``: hidden layers as wide as the input, dropout before every linear layer.

``node`` (in GraphGPS also ``inductive_node``) is the MLP of ``graph`` without the pooling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import Activation, activation
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
        pool: nodes to graphs: ``add``, ``mean``, ``max``, or a function that is called as ``pool(x, index)``.
        mlp: [B, F] to [B, dim_out].
    """

    def __init__(self, pool: str | Callable[..., Tensor], mlp: nn.Module) -> None:
        super().__init__()
        self.pool, self.mlp = Pool(pool), mlp

    def predict(self, x: Tensor, index: Tensor, num_graphs: int) -> Tensor:
        """Nodes [N, F], their graphs [N] and the number of graphs to [B, dim_out]."""
        return self.mlp(self.pool(x, index, num_graphs))

    def forward(self, batch: Any) -> tuple[Tensor, Tensor | None]:
        """A batch whose ``x`` is [N, F] to (prediction [B, dim_out], ``batch.y``)."""
        return self.predict(batch.x, batch.batch, batch.num_graphs), batch.y


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
