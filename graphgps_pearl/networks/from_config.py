"""From a config to a network: the one module where networks and config meet.

The config is passed along. GraphGym's global config is set only before a part is built that a third party has
registered with GraphGym, since such a part may read it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

# Importing the builder fills GraphGym's registry with GraphGym's own networks, heads, poolings and layers.
import torch_geometric.graphgym.model_builder  # noqa: F401
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg as active_cfg
from torch_geometric.graphgym.models.layer import new_layer_config

from graphgps_pearl import config, encoders
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import (
    ACTIVATIONS,
    Activation,
    GraphormerLayer,
    Layout,
    LocalSettings,
    MessagePassingLayer,
    SANLayer,
    build_gps_layer,
    reads_edges,
    unknown,
)
from graphgps_pearl.networks.heads import (
    EdgeHead,
    GraphHead,
    NameHead,
    NodeHead,
    graph_mlp,
    plain_mlp,
    san_mlp,
)
from graphgps_pearl.networks.network import GraphNetwork, PreLayer
from graphgps_pearl.networks.pooling import POOLINGS
from graphgps_pearl.vocabulary import BIASED, EDGE_HEADS, GRAPHGYM_READS_NO_EDGES, MESSAGE_PASSING, NODE_HEADS

log = logging.getLogger(__name__)


def build(cfg: Any, dim_in: int, dim_out: int) -> nn.Module:
    """The network that the config describes.

    Args:
        cfg: the config.
        dim_in: raw node feature columns.
        dim_out: number of predictions per graph.

    Returns:
        A module whose ``forward(batch)`` gives (prediction, target).
    """
    config.check(cfg)  # again, since GraphGym's config comes from elsewhere
    if cfg is not active_cfg:  # GraphGym's own create_model comes with the active one
        cfg = cfg.clone()
        cfg.defrost()
    cfg.share["dim_in"], cfg.share["dim_out"] = dim_in, dim_out
    if cfg.model.type in NETWORKS:
        return NETWORKS[cfg.model.type](cfg, dim_in, dim_out)
    make = _registered(cfg, register.network_dict, NETWORKS, cfg.model.type, "model.type")
    offer_parts(cfg.dataset.node_encoder_name)
    try:
        return make(dim_in, dim_out)
    except KeyError as error:
        for group, key in (("gnn", "layer_type"), ("gnn", "stage_type"), ("gnn", "act"), ("gnn", "head")):
            if cfg[group][key] == error.args[0]:
                raise ConfigError(
                    f"{group}.{key}: {error.args[0]!r} is not registered with GraphGym, where model.type "
                    f"{cfg.model.type} looks it up; use custom_gnn, or another {group}.{key}"
                ) from error
        raise


def offer_parts(node_encoder: str = "") -> None:
    """Fill the free names of GraphGym's registry, where networks of others look their parts up, with our
    encoders, heads and poolings; also with a ``node_encoder`` that is composed."""
    node_encoders: dict[str, Any] = dict(encoders.NODE_ENCODERS)
    if "+" in node_encoder:
        node_encoders[node_encoder] = partial(encoders.ComposedNodeEncoder, node_encoder)
    tables: tuple[tuple[dict[str, Any], Mapping[str, Any]], ...] = (
        (register.node_encoder_dict, node_encoders),
        (register.edge_encoder_dict, encoders.EDGE_ENCODERS),
        (register.head_dict, dict.fromkeys(HEADS, partial(build_head, active_cfg))),
        (register.pooling_dict, POOLINGS),
    )
    for registry, ours in tables:
        for name, part in ours.items():
            registry.setdefault(name, part)


def _gps_model(cfg: Any, dim_in: int, dim_out: int) -> nn.Module:
    local, _, attention = cfg.gt.layer_type.partition("+")
    # GraphGPS has two names for it; any encoding that gives a bias of the attention is read.
    attention = "Transformer" if attention == BIASED else attention
    encoder = _encoder(cfg, dim_in, reads_edges(local))
    layers = [
        build_gps_layer(
            cfg.gt.dim_hidden,
            local,
            attention,
            heads=cfg.gt.n_heads,
            act=_activation(cfg),
            dropout=cfg.gt.dropout,
            attn_dropout=cfg.gt.attn_dropout,
            norm=_norm(cfg),
            edge_dim=encoder.edge_dim or None,
            update_edges=number < cfg.gt.layers - 1,
            equivstable_pe=cfg.posenc_EquivStableLapPE.enable,
            pna_degrees=cfg.gt.pna_degrees,
            attn_gate=cfg.gt.attn_gate,
            degree_scaler=cfg.gt.degree_scaler,
            edge_update=cfg.gt.edge_update,
        )
        for number in range(cfg.gt.layers)
    ]
    return _network(cfg, encoder, layers, dim_out)


def _custom_gnn(cfg: Any, dim_in: int, dim_out: int) -> nn.Module:
    name = cfg.gnn.layer_type
    residual = cfg.gnn.residual or cfg.gnn.stage_type == "skipsum"
    local = MESSAGE_PASSING.get(name)
    edges_are_read = name not in GRAPHGYM_READS_NO_EDGES if local is None else reads_edges(local)
    encoder = _encoder(cfg, dim_in, edges_are_read)
    layers: list[nn.Module] = []
    for number in range(cfg.gnn.layers_mp):
        if local is None:
            layers.append(RegisteredLayer(cfg, name, residual))
            continue
        settings = LocalSettings(
            dim=cfg.gnn.dim_inner,
            edge_dim=encoder.edge_dim or None,
            act=_activation(cfg),
            dropout=cfg.gnn.dropout,
            residual=residual,
            update_edges=number < cfg.gnn.layers_mp - 1,
            equivstable_pe=cfg.posenc_EquivStableLapPE.enable,
            pna_degrees=cfg.gt.pna_degrees,
        )
        layers.append(MessagePassingLayer(local, settings))
    return _network(cfg, encoder, layers, dim_out)


def _san_transformer(cfg: Any, dim_in: int, dim_out: int) -> nn.Module:
    gt = cfg.gt
    layers = [
        SANLayer(gt.dim_hidden, gt.n_heads, gt.full_graph, gt.gamma, gt.dropout, _norm(cfg))
        for _ in range(gt.layers)
    ]
    return _network(cfg, _encoder(cfg, dim_in, edges_are_read=True), layers, dim_out)


def _graphormer(cfg: Any, dim_in: int, dim_out: int) -> nn.Module:
    settings = cfg.graphormer
    dropouts = (settings.dropout, settings.attention_dropout, settings.mlp_dropout)
    layers = [
        GraphormerLayer(settings.embed_dim, settings.num_heads, *dropouts) for _ in range(settings.num_layers)
    ]
    return _network(cfg, _encoder(cfg, dim_in, edges_are_read=False), layers, dim_out)


NETWORKS: dict[str, Callable[[Any, int, int], nn.Module]] = {
    "GPSModel": _gps_model,
    "custom_gnn": _custom_gnn,
    "SANTransformer": _san_transformer,
    "Graphormer": _graphormer,
}


def _norm(cfg: Any) -> str:
    return "layer" if cfg.gt.layer_norm else "batch" if cfg.gt.batch_norm else "none"


def _encoder(cfg: Any, dim_in: int, edges_are_read: bool) -> encoders.FeatureEncoder:
    encoder = encoders.FeatureEncoder(cfg, dim_in)
    if encoder.edge_encoder is not None and not edges_are_read:
        # Its parameters would never get a gradient.
        log.info("%s reads no edge features: the edge encoder is left out", _layer_type(cfg))
        encoder.edge_encoder, encoder.edge_norm, encoder.edge_dim = None, None, 0
    return encoder


def _network(
    cfg: Any, encoder: encoders.FeatureEncoder, layers: Sequence[nn.Module], dim_out: int
) -> GraphNetwork:
    width, dim = encoder.dim_in, cfg.gnn.dim_inner
    pre_mp: list[nn.Module] = []
    for _ in range(cfg.gnn.layers_pre_mp):
        pre_mp.append(
            PreLayer(
                width,
                dim,
                act=_activation(cfg),
                dropout=cfg.gnn.dropout,
                batch_norm=cfg.gnn.batchnorm,
                unit_rows=cfg.gnn.l2norm,
                eps=cfg.bn.eps,
                momentum=cfg.bn.mom,
            )
        )
        width = dim
    if width != dim:
        raise ConfigError(
            f"gnn.dim_inner: nodes come {width} wide into layers that are {dim} wide: "
            "set dataset.node_encoder True, or gnn.layers_pre_mp to at least 1"
        )
    return GraphNetwork(
        encoder,
        layers,
        build_head(cfg, dim, dim_out),
        dim,
        pre_mp=nn.Sequential(*pre_mp) if pre_mp else None,
        injected_dim=encoders.injected_dim(cfg),
        equivstable_pe=cfg.posenc_EquivStableLapPE.enable,
    )


def build_head(cfg: Any, dim_in: int, dim_out: int) -> nn.Module:
    """The head ``gnn.head``; ``default`` is the one named after ``dataset.task``."""
    name = cfg.dataset.task if cfg.gnn.head == "default" else cfg.gnn.head
    if name not in HEADS:
        return _registered(cfg, register.head_dict, HEADS, name, "gnn.head")(dim_in, dim_out)
    if name in NODE_HEADS:
        return NodeHead(HEADS[name](cfg, dim_in, dim_out))
    if name in EDGE_HEADS:
        cosine = cfg.model.edge_decoding == "cosine_similarity"
        return EdgeHead(HEADS[name](cfg, dim_in, dim_in), cosine, cfg.dataset.resample_negative)
    pools = [
        _registered(cfg, register.pooling_dict, POOLINGS, part, "model.graph_pooling")
        for part in cfg.model.graph_pooling.split("+")
    ]
    mlp = HEADS[name](cfg, len(pools) * dim_in, dim_out)
    if name == "ogb_code_graph":
        return NameHead(pools, mlp)
    return GraphHead(pools, mlp, nn.LayerNorm(dim_in) if name == "graphormer_graph" else None)


def _graph_mlp(cfg: Any, dim_in: int, dim_out: int) -> nn.Module:
    return graph_mlp(dim_in, dim_out, cfg.gnn.layers_post_mp, cfg.gnn.dim_inner)


HEADS: dict[str, Callable[[Any, int, int], nn.Module]] = {
    **dict.fromkeys(("graph", *NODE_HEADS, *EDGE_HEADS), _graph_mlp),
    "san_graph": lambda cfg, dim_in, dim_out: san_mlp(dim_in, dim_out, _activation(cfg)),
    **dict.fromkeys(("graphormer_graph", "ogb_code_graph"), lambda cfg, *dims: nn.Linear(*dims)),
    "mlp_graph": lambda cfg, dim_in, dim_out: plain_mlp(
        dim_in, dim_out, cfg.gnn.layers_post_mp, _activation(cfg), cfg.gnn.dropout
    ),
}


class RegisteredLayer(nn.Module):
    """A layer from GraphGym's registry, which takes and gives a batch, as one of ours.

    Args:
        cfg: the config.
        name: in the registry.
        residual: whether the layer's result is added to its input.
    """

    parts: ClassVar[dict[str, str]] = {"layer": "local", "act": "local"}

    def __init__(self, cfg: Any, name: str, residual: bool) -> None:
        super().__init__()
        make = _registered(cfg, register.layer_dict, MESSAGE_PASSING, name, "gnn.layer_type")
        dim = cfg.gnn.dim_inner
        self.layer = make(new_layer_config(dim, dim, 1, has_act=True, has_bias=True, cfg=cfg))
        self.act = _registered(cfg, register.act_dict, ACTIVATIONS, cfg.gnn.act, "gnn.act")()
        self.dropout = nn.Dropout(cfg.gnn.dropout)
        self.residual = residual

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
    ) -> tuple[Tensor, Tensor | None]:
        """Nodes [N, F] and edges [E, D] to the same."""
        batch = Batch(batch=layout.index, x=x, edge_index=edge_index, edge_attr=edge_attr)
        batch = self.layer(batch)
        update = self.dropout(self.act(batch.x))
        return x + update if self.residual else update, batch.edge_attr


def _registered(cfg: Any, registry: Mapping[str, Any], ours: Mapping[str, Any], name: str, key: str) -> Any:
    """Ours of that name, else what is registered with GraphGym, else an error that names both."""
    if name in ours:
        return ours[name]
    if name in registry:
        if cfg is not active_cfg:
            config.activate(cfg)
        return registry[name]
    raise unknown(key, name, {*ours, *registry})


def _activation(cfg: Any) -> Activation:
    return _registered(cfg, register.act_dict, ACTIVATIONS, cfg.gnn.act, "gnn.act")


def _layer_type(cfg: Any) -> str:
    names = {"GPSModel": cfg.gt.layer_type, "custom_gnn": cfg.gnn.layer_type}
    return str(names.get(cfg.model.type, cfg.model.type))
