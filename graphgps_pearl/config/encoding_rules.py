"""Combinations of keys of the encodings that cannot work, among them what a network cannot take."""

from __future__ import annotations

from collections.abc import Iterator

from yacs.config import CfgNode

from graphgps_pearl.config.posenc import kernel_times
from graphgps_pearl.config.resolving import NAME, encodings, known_encodings, layer_parts
from graphgps_pearl.vocabulary import (
    BIASED,
    ENCODING_MODELS,
    GRAPH_HEADS,
    GRAPHGYM_READS_NO_EDGES,
    MESSAGE_PASSING,
    NEED_EDGES,
    READ_NO_EDGES,
)


def encoding_problems(cfg: CfgNode) -> Iterator[str]:
    """Every problem, as ``KEY = VALUE: what is wrong``."""
    for rules in (_graphormer, _encodings, _pearl, _pairs):
        yield from rules(cfg)


def _graphormer(cfg: CfgNode) -> Iterator[str]:
    bias, settings, name = cfg.posenc_GraphormerBias, cfg.graphormer, cfg.dataset.node_encoder_name
    named, biased = "GraphormerBias" in encodings(cfg), layer_parts(cfg)[1] == BIASED
    graphormer, kind = cfg.model.type == "Graphormer", cfg.gt.layer_type
    if graphormer and settings.embed_dim != cfg.gnn.dim_inner:
        yield f"graphormer.embed_dim = {settings.embed_dim}: must equal gnn.dim_inner = {cfg.gnn.dim_inner}"
    if graphormer and settings.embed_dim % settings.num_heads:
        yield f"graphormer.num_heads = {settings.num_heads}: must divide embed_dim = {settings.embed_dim}"
    given = named and not bias.node_degrees_only
    if biased and not given:
        yield f"gt.layer_type = {kind}: needs GraphormerBias in {NAME}, with node_degrees_only False"
    if biased and settings.num_heads != cfg.gt.n_heads:
        yield f"graphormer.num_heads = {settings.num_heads}: must equal gt.n_heads = {cfg.gt.n_heads}"
    if given and not biased and not graphormer:
        where = f"gt.layer_type = {kind}" if cfg.model.type == "GPSModel" else f"model.type {cfg.model.type}"
        yield (
            f"{NAME} = {name}: {where} does not read the bias of GraphormerBias; use model.type Graphormer "
            "or BiasedTransformer in gt.layer_type, or posenc_GraphormerBias.node_degrees_only True"
        )
    token = named and settings.use_graph_token
    pooling = cfg.model.graph_pooling
    pools_token = "graph_token" in pooling.split("+")
    if pools_token and not token:
        yield f"model.graph_pooling = {pooling}: needs GraphormerBias and graphormer.use_graph_token True"
    if pools_token and token and not _token_sees_graph(cfg):
        yield (
            f"model.graph_pooling = {pooling}: the token has no edges, and no attention reaches it, so it "
            "would know nothing of its graph; use add or mean, or a network with attention"
        )
    if not named:
        return
    for key in ("num_in_degrees", "num_out_degrees", *(["num_spatial_types"] if given else [])):
        if bias[key] is None:
            yield f"posenc_GraphormerBias.{key} = null: expected a number, as GraphormerBias is named"
    if token and name.split("+")[-1] != "GraphormerBias":
        yield (
            f"{NAME} = {name}: encodings behind GraphormerBias do not know the graph token; name it last, or "
            "set graphormer.use_graph_token False"
        )
    head = cfg.dataset.task if cfg.gnn.head == "default" else cfg.gnn.head
    if token and head not in GRAPH_HEADS:
        yield f"graphormer.use_graph_token = True: gnn.head = {head} is not for graphs; set it False"


def _token_sees_graph(cfg: CfgNode) -> bool:
    """Whether anything reaches a node without edges; True where a third party's network decides."""
    by_type = {
        "custom_gnn": False,
        "GPSModel": layer_parts(cfg)[1] != "None" or cfg.gt.layer_norm,  # that norm is over a whole graph
        "SANTransformer": cfg.gt.full_graph,
    }
    return by_type.get(cfg.model.type, True)


def _encodings(cfg: CfgNode) -> Iterator[str]:
    name, named = cfg.dataset.node_encoder_name, encodings(cfg)
    if not cfg.dataset.node_encoder and set(name.split("+")) & set(known_encodings()):
        yield f"dataset.node_encoder = False: would ignore dataset.node_encoder_name = {name}; set it True"
    widths = {}
    for encoding in named:
        group = cfg[f"posenc_{encoding}"]
        if "dim_pe" in group and group.get("inject", "input") == "input":
            widths[f"posenc_{encoding}.dim_pe"] = group.dim_pe
        if encoding not in ENCODING_MODELS:  # what a third party's model is, or its layers, is not known here
            continue
        if group.model not in ENCODING_MODELS[encoding]:
            models = " or ".join(ENCODING_MODELS[encoding])
            yield f"posenc_{encoding}.model = {group.model}: expected {models}, as {encoding} is named"
        if group.model != "Linear" and group.layers < 1:
            yield f"posenc_{encoding}.layers = {group.layers}: expected at least 1, as {encoding} is named"
    if sum(widths.values()) > cfg.gnn.dim_inner:
        written = " + ".join(f"{key} = {width}" for key, width in widths.items())
        total = f" (in sum {sum(widths.values())})" if len(widths) > 1 else ""
        yield f"{written}{total}: must be at most gnn.dim_inner, which is {cfg.gnn.dim_inner}"
    if "RWSE" in named and not kernel_times(cfg.posenc_RWSE.kernel):
        yield "posenc_RWSE.kernel.times = []: expected steps of the walk, such as times_func: range(1,21)"
    lappe, signnet = cfg.posenc_LapPE, cfg.posenc_SignNet
    if "LapPE" in named and lappe.model == "Transformer" and lappe.dim_pe % lappe.n_heads:
        heads, width = lappe.n_heads, lappe.dim_pe
        yield f"posenc_LapPE.n_heads = {heads}: must divide posenc_LapPE.dim_pe, which is {width}"
    if "SignNet" in named and signnet.model == "MLP" and not signnet.eigen.max_freqs:
        yield (
            "posenc_SignNet.eigen.max_freqs = 0: an MLP needs a fixed number; give one, or use model: DeepSet"
        )
    if "SignNet" in named and not signnet.post_layers:
        yield "posenc_SignNet.post_layers = 0: expected at least 1, the MLP that mixes the eigenvectors"
    if "GSN" in named and not cfg.posenc_GSN.max_cycle and not cfg.posenc_GSN.max_clique:
        yield "posenc_GSN.max_cycle = 0: posenc_GSN.max_clique is 0 too, so nothing would be counted; set one"
    if "EquivStableLapPE" in named:
        custom = cfg.model.type == "custom_gnn"
        key, layer = ("gnn", cfg.gnn.layer_type) if custom else ("gt", cfg.gt.layer_type)
        local = MESSAGE_PASSING.get(layer, layer) if custom else layer_parts(cfg)[0]
        if local not in ("", *NEED_EDGES):
            yield (
                f"{key}.layer_type = {layer}: EquivStableLapPE weighs the edges of "
                f"{' or '.join(NEED_EDGES)}; use one of them as the local part"
            )
        if cfg.model.type in ("SANTransformer", "Graphormer", "gnn"):
            yield (
                f"{NAME} = {name}: EquivStableLapPE weighs the messages of {' or '.join(NEED_EDGES)}, and "
                f"model.type {cfg.model.type} has none; use GPSModel, or leave it out"
            )


def _pearl(cfg: CfgNode) -> Iterator[str]:
    named = encodings(cfg)
    for encoding in {"RPEARL", "BPEARL"} & set(named):
        group = f"posenc_{encoding}"
        if not cfg[group].num_layers and not cfg[group].num_taps:
            yield f"{group}.num_layers = 0: needs {group}.num_taps >= 1, or Φ has no layer at all"
        if cfg[group].end == "linear":
            if not cfg[group].num_layers:
                yield f"{group}.end = linear: is the end of GIN layers, and {group}.num_layers is 0"
            several = cfg[group].num_layers + min(cfg[group].num_taps, 1) > 1
            if cfg[group].skip == "sum" and several and cfg[group].hidden_dim != cfg[group].dim_pe:
                yield (
                    f"{group}.skip = sum: adds all layers' outputs; {group}.end = linear gives the last one "
                    f"{group}.dim_pe columns; set {group}.hidden_dim to {cfg[group].dim_pe} too"
                )
        if cfg[group].norm == "graph" and not cfg[group].num_taps:
            yield f"{group}.norm = graph: is that of the generalised layer; needs {group}.num_taps >= 1"
        if cfg[group].norm == "layer" and cfg[group].hidden_dim == 1:
            yield f"{group}.norm = layer: needs {group}.hidden_dim >= 2, over one column it is constant"
    bpearl, rpearl = cfg.posenc_BPEARL, cfg.posenc_RPEARL
    if "BPEARL" in named and bpearl.tap_diagonal and bpearl.num_taps < 2:
        yield f"posenc_BPEARL.tap_diagonal = True: needs num_taps >= 2, which is {bpearl.num_taps}"
    if "RPEARL" in named and rpearl.tap_moments and rpearl.num_taps < 2:
        yield f"posenc_RPEARL.tap_moments = True: needs num_taps >= 2, which is {rpearl.num_taps}"
    chunked = 0 < rpearl.chunk_size < rpearl.num_samples
    if "RPEARL" in named and chunked and rpearl.norm in ("batch", "graph"):
        yield (
            f"posenc_RPEARL.chunk_size = {rpearl.chunk_size}: posenc_RPEARL.norm = {rpearl.norm} would "
            "differ from chunk to chunk; use norm: layer or none, or chunk_size: 0"
        )


def _pairs(cfg: CfgNode) -> Iterator[str]:
    """What an encoding gives besides input columns needs a network that reads it."""
    if cfg.model.type == "gnn":
        for encoding in encodings(cfg):
            group = cfg[f"posenc_{encoding}"]
            for key, off in (("inject", "input"), ("pair_bias", "none"), ("pair_edges", False)):
                if group.get(key, off) != off:
                    yield (
                        f"posenc_{encoding}.{key} = {group[key]}: GraphGym's model.type gnn cannot use it; "
                        f"use GPSModel or custom_gnn, or {off}"
                    )
    if "BPEARL" not in encodings(cfg):
        return
    local, attention = layer_parts(cfg)
    kind = cfg.posenc_BPEARL.pair_bias
    if kind != "none":
        wrong = f"posenc_BPEARL.pair_bias = {kind}: "
        if cfg.model.type == "custom_gnn":
            yield f"{wrong}model.type custom_gnn has no attention to add it to; use GPSModel, or none"
        if cfg.model.type == "SANTransformer":
            yield f"{wrong}the attention of model.type SANTransformer takes none; use GPSModel, or none"
        if attention == "Performer":
            yield f"{wrong}Performer never forms the logits it would be added to; use Transformer, or none"
        if attention == "None":
            yield f"{wrong}gt.layer_type = {cfg.gt.layer_type} has no attention; use Transformer, or none"
        if "GraphormerBias" in encodings(cfg):
            yield from (wrong + problem for problem in _two_biases(cfg))
    if cfg.posenc_BPEARL.pair_edges:
        wrong = "posenc_BPEARL.pair_edges = True: "
        if cfg.model.type == "Graphormer":
            yield f"{wrong}model.type Graphormer reads no edge features; use GPSModel, or False"
        if not cfg.dataset.edge_encoder:
            yield f"{wrong}needs edge features to add to; set dataset.edge_encoder True"
        layer = cfg.gnn.layer_type if cfg.model.type == "custom_gnn" else local
        if MESSAGE_PASSING.get(layer, layer) in (*READ_NO_EDGES, *GRAPHGYM_READS_NO_EDGES):
            others = "GINE or CustomGatedGCN (gineconv, gatedgcnconv)"
            yield f"{wrong}{layer} reads no edge features; use {others}"


def _two_biases(cfg: CfgNode) -> Iterator[str]:
    if not cfg.posenc_GraphormerBias.node_degrees_only:
        yield (
            "GraphormerBias gives a bias of the attention too, and the layers take one; use none, or "
            "posenc_GraphormerBias.node_degrees_only True"
        )
    elif cfg.graphormer.use_graph_token:
        yield "has no values for the graph token; use none, or graphormer.use_graph_token False"
