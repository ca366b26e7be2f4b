r"""The GPS layer, and message passing alone.

`Recipe for a General, Powerful, Scalable Graph Transformer <https://arxiv.org/abs/2205.12454>`_:

.. math::
    X_L &= \mathrm{norm}(X + \mathrm{drop}(\mathrm{local}(X, E, A))), \qquad
    X_G = \mathrm{norm}(X + \mathrm{drop}(\mathrm{attention}(X))) \\
    X' &= \mathrm{norm}(H + \mathrm{FF}(H)), \qquad H = X_L + X_G, \qquad
    \mathrm{FF}(H) = \mathrm{drop}(\mathrm{drop}(\mathrm{act}(H W_1 + b_1)) W_2 + b_2)

Local message passing and global attention see the same input. Either may be absent. Every linear layer keeps
the bias that GraphGPS gives it, also where a batch norm follows and makes it idle: parameter counts are
compared with theirs. A gate in the attention, a degree scaler after it and edges that every layer updates are
options that GraphGPS does not have; all are off by default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.nn.norm import LayerNorm

from graphgps_pearl.contracts import AttentionBias
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers.attention import LinearAttention, MultiheadAttention
from graphgps_pearl.layers.batch_norm import BatchNorm
from graphgps_pearl.layers.dropout import Dropout
from graphgps_pearl.layers.layout import Layout, wide
from graphgps_pearl.layers.linear import Linear
from graphgps_pearl.layers.local import LocalSettings, as_local, build_local, reads_edges
from graphgps_pearl.layers.names import Activation, activation, pick
from graphgps_pearl.vocabulary import LAYER_NORMS

GLOBAL_MODELS: dict[str, Callable[[int, int, float, str], nn.Module] | None] = {
    "None": None,
    "Transformer": MultiheadAttention,
    "Performer": LinearAttention,
}


class Norm(nn.Module):
    """Normalisation of packed nodes: over the batch, over each graph, or none.

    Args:
        dim: F.
        kind: ``batch`` (per feature, over all nodes of the batch; a single node is treated as in evaluation),
            ``layer`` (PyG's graph-wise layer norm: over all nodes and features of each graph) or ``none``.
    """

    def __init__(self, dim: int, kind: str) -> None:
        super().__init__()
        self.batch = BatchNorm(dim) if kind == "batch" else None
        self.layer = LayerNorm(dim, mode="graph") if kind == "layer" else None
        if kind not in LAYER_NORMS:
            raise ValueError(f"norm is batch, layer or none, not {kind!r}")

    def forward(self, x: Tensor, layout: Layout) -> Tensor:
        """[N, F] to [N, F]."""
        if self.batch is not None:
            return self.batch(x)
        if self.layer is None:
            return x
        # PyG's sums are in the type of what it is given.
        return self.layer(wide(x), layout.index, layout.num_graphs).to(x.dtype)


class DegreeScaler(nn.Module):
    r"""The log-degree scaler that `GRIT <https://arxiv.org/abs/2305.17589>`_ puts after attention.

    .. math::
        y'_v = \theta_1 \odot y_v + \log(1 + d_v) \, \theta_2 \odot y_v

    d_v is the in-degree of v. It starts as the identity: θ₁ = 1, θ₂ = 0.

    Args:
        dim: F.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.theta1 = nn.Parameter(torch.ones(dim))
        self.theta2 = nn.Parameter(torch.zeros(dim))

    def forward(self, y: Tensor, edge_index: Tensor, layout: Layout) -> Tensor:
        """[N, F] to [N, F]."""
        return y * torch.addcmul(self.theta1, layout.log_degree(edge_index, y.dtype), self.theta2)


class EdgeUpdate(nn.Module):
    r"""Edge features for the next layer, from what they were and the nodes at both ends.

    .. math::
        e'_{ij} = e_{ij} + \mathrm{drop}(\mathrm{act}(\mathrm{norm}(e_{ij} C + (x_i + x_j) A)))

    Args:
        dim: F, the width of the nodes.
        edge_dim: D, the width of the edges.
        act: activation.
        dropout: of the update.
    """

    def __init__(self, dim: int, edge_dim: int, act: Activation = "relu", dropout: float = 0.0) -> None:
        super().__init__()
        self.edges = Linear(edge_dim, edge_dim, bias=False)
        self.nodes = Linear(dim, edge_dim, bias=False)
        self.norm = BatchNorm(edge_dim)
        self.act = activation(act)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Nodes [N, F] and edges [E, D] to edges [E, D]."""
        source, target = edge_index
        ends = self.nodes(x)
        logit = self.edges(edge_attr) + ends.index_select(0, source) + ends.index_select(0, target)
        return edge_attr + self.dropout(self.act(self.norm(logit)))


class GPSLayer(nn.Module):
    """Local message passing in parallel with global attention, then a feed-forward block.

    Args:
        dim: F, the width.
        local: the local model: a convolution of PyG's from [N, F] to [N, F], or any module that is called as
            ``update, edge_attr = local(x, edge_index, edge_attr, layout)``; None for attention alone.
        attention: called as ``attention(x, layout, bias)``, for example
            :class:`~graphgps_pearl.layers.attention.MultiheadAttention`; None for message passing alone.
        act: activation of the feed-forward block.
        dropout: after local model, attention and both feed-forward layers.
        norm: ``batch``, ``layer`` or ``none``.
        degree_scaler: whether a :class:`DegreeScaler` follows the attention.
        edge_update: makes the next layer's edges of this layer's nodes, for example an :class:`EdgeUpdate`.
    """

    # Which part of the parameter budget each child belongs to.
    parts: ClassVar[dict[str, str]] = {
        "local": "local",
        "norm_local": "local",
        "edge_update": "local",
        "attention": "attention",
        "degree_scaler": "attention",
        "norm_attention": "attention",
        "feed_forward": "feed-forward",
        "norm": "feed-forward",
    }

    def __init__(
        self,
        dim: int,
        local: nn.Module | None,
        attention: nn.Module | None,
        act: Activation = "relu",
        dropout: float = 0.0,
        norm: str = "batch",
        degree_scaler: bool = False,
        edge_update: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if local is None and attention is None:
            raise ConfigError(
                "gt.layer_type: None+None leaves nothing to a layer (local and attention are None): name a "
                "local or a global model"
            )
        if attention is None and degree_scaler:
            raise ConfigError(
                "gt.degree_scaler: it acts on attention, and gt.layer_type has none: name a global model"
            )
        self.local = None if local is None else as_local(local)
        self.attention = attention
        self.degree_scaler = DegreeScaler(dim) if degree_scaler else None
        # A norm exists only with what it normalises: no parameter without a gradient.
        self.norm_local = None if local is None else Norm(dim, norm)
        self.norm_attention = None if attention is None else Norm(dim, norm)
        self.dropout = Dropout(dropout)
        self.feed_forward = nn.Sequential(
            Linear(dim, 2 * dim),
            activation(act),
            Dropout(dropout),
            Linear(2 * dim, dim),
            Dropout(dropout),
        )
        self.norm = Norm(dim, norm)
        self.edge_update = edge_update

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        layout: Layout,
        attn_bias: Tensor | AttentionBias | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """One layer.

        Args:
            x: [N, F] nodes of all graphs, packed.
            edge_index: [2, E].
            edge_attr: [E, D], or None for local models that do without.
            layout: of the batch, made once for all layers.
            attn_bias: [B, H or 1, n, n], or the same group by group, added to the logits (query, key).
        """
        branches = []
        if self.local is not None and self.norm_local is not None:
            update, edge_attr = self.local(x, edge_index, edge_attr, layout)
            branches.append(self.norm_local(x + self.dropout(update), layout))
        if self.attention is not None and self.norm_attention is not None:
            update = self.attention(x, layout, attn_bias)
            if self.degree_scaler is not None:
                update = self.degree_scaler(update, edge_index, layout)
            branches.append(self.norm_attention(x + self.dropout(update), layout))
        h = branches[0] if len(branches) == 1 else branches[0] + branches[1]
        x = self.norm(h + self.feed_forward(h), layout)
        return x, edge_attr if self.edge_update is None else self.edge_update(x, edge_index, edge_attr)


def build_gps_layer(
    dim: int,
    local: str,
    attention: str,
    heads: int = 1,
    act: Activation = "relu",
    dropout: float = 0.0,
    attn_dropout: float = 0.0,
    norm: str = "batch",
    edge_dim: int | None = None,
    update_edges: bool = True,
    equivstable_pe: bool = False,
    pna_degrees: Sequence[int] = (),
    attn_gate: str = "none",
    degree_scaler: bool = False,
    edge_update: bool = False,
) -> GPSLayer:
    """A :class:`GPSLayer` of models by name, with GraphGPS's settings.

    Args:
        dim: F, the width.
        local: name of the local model, see :data:`~graphgps_pearl.layers.local.LOCAL_MODELS`.
        attention: name of the global model, see :data:`GLOBAL_MODELS`.
        heads: attention heads.
        act: activation.
        dropout: after local model, attention and both feed-forward layers.
        attn_dropout: of the attention weights.
        norm: ``batch``, ``layer`` or ``none``.
        edge_dim: D, the width of the edge features; None where there are none.
        update_edges: False for the network's last layer, whose edges are not read.
        equivstable_pe: weight messages by the distance of encodings that the layout holds.
        pna_degrees: histogram of in-degrees, for PNA.
        attn_gate: ``none``, ``head`` or ``channel``, see :class:`~graphgps_pearl.layers.attention.Gate`.
        degree_scaler: whether a :class:`DegreeScaler` follows the attention.
        edge_update: whether an :class:`EdgeUpdate` makes the next layer's edges (none in the last layer).
    """
    settings = LocalSettings(
        dim=dim,
        edge_dim=edge_dim,
        heads=heads,
        act=act,
        dropout=dropout,
        update_edges=update_edges,
        equivstable_pe=equivstable_pe,
        pna_degrees=pna_degrees,
    )
    local_model = build_local(local, settings)
    make = pick(GLOBAL_MODELS, attention, "gt.layer_type")
    if make is None and attn_gate != "none":
        raise ConfigError(
            "gt.attn_gate: it acts on attention, and gt.layer_type has none: name a global model"
        )
    attention_model = None if make is None else make(dim, heads, attn_dropout, attn_gate)
    edges = None
    if edge_update:
        if edge_dim is None or local == "CustomGatedGCN" or not reads_edges(local):
            raise ConfigError(f"gt.edge_update: {local} reads no edges, or updates them itself: use GINE")
        edges = EdgeUpdate(dim, edge_dim, act, dropout) if update_edges else None
    return GPSLayer(dim, local_model, attention_model, act, dropout, norm, degree_scaler, edges)


class MessagePassingLayer(nn.Module):
    """Message passing alone: X' = [X +] drop(act(local(X))).

    Args:
        local: name of the local model, see :data:`~graphgps_pearl.layers.local.LOCAL_MODELS`.
        settings: what it is made from.
        key: the config key that gave the name.
    """

    parts: ClassVar[dict[str, str]] = {"local": "local", "act": "local"}

    def __init__(self, local: str, settings: LocalSettings, key: str = "gnn.layer_type") -> None:
        super().__init__()
        self.residual = settings.residual
        model = build_local(local, settings, key)
        if model is None:
            raise ConfigError(f"{key}: message passing alone needs a local model")
        self.local = model
        # GatedGCN has a norm and an activation inside.
        self.act = nn.Identity() if local == "CustomGatedGCN" else activation(settings.act)
        self.dropout = Dropout(settings.dropout)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
    ) -> tuple[Tensor, Tensor | None]:
        """Nodes [N, F] and edges [E, D] to the same."""
        update, edge_attr = self.local(x, edge_index, edge_attr, layout)
        update = self.dropout(self.act(update))
        return x + update if self.residual else update, edge_attr
