"""What follows from the keys that were set, and the combinations of keys that cannot work.

A value that was set is never changed silently: a contradiction is an error. The command line has priority
over the file, so naming another encoder there switches the file's encodings off. Rules read the config alone;
what depends on tensors is checked by the module that has them, and names that others may register (encoders,
networks, heads) where they are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import product

from yacs.config import CfgNode

from graphgps_pearl.config.posenc import NEEDED, SET_UP, kernel_times
from graphgps_pearl.config.schema import SCHEMA, get, put
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.vocabulary import (
    BIASED,
    CLASSIFICATION_LOSSES,
    EDGE_HEADS,
    ENCODING_MODELS,
    EXTRA_METRICS,
    GLOBAL_LAYERS,
    GRAPH_HEADS,
    LOCAL_LAYERS,
    MESSAGE_PASSING,
    METRICS,
    NEED_EDGES,
    NETWORKS,
    NODE_HEADS,
    READ_NO_EDGES,
    REGRESSION_LOSSES,
    SMALLER_IS_BETTER,
    STAGES,
)

NAME = "dataset.node_encoder_name"
CLASSIFICATION_METRICS = ("accuracy", "auc", "ap", "f1")
GRAPHGYM_READS_NO_EDGES = ("generalconv", "sageconv", "linear", "mlp")


def known_encodings() -> tuple[str, ...]:
    """Names of the encodings that have a group ``posenc_<NAME>``."""
    groups = (key.removesuffix(".enable") for key in SCHEMA if key.endswith(".enable"))
    return tuple(group.removeprefix("posenc_") for group in groups if group.startswith("posenc_"))


def encodings(cfg: CfgNode) -> tuple[str, ...]:
    """The encodings named in ``dataset.node_encoder_name`` that have a config group, in that order."""
    if not cfg.dataset.node_encoder:
        return ()
    known = known_encodings()
    return tuple(part for part in cfg.dataset.node_encoder_name.split("+") if part in known)


def resolve(cfg: CfgNode, layers: Mapping[str, int], name: str) -> Iterator[str]:
    """Fill in what follows, and yield what a user should know of it.

    ``layers`` says which source set a key (see :class:`.loading.Setting`).
    """
    _switch_encodings(cfg, layers, name)
    yield from _set_up_encodings(cfg, layers)
    optim = cfg.optim
    if optim.scheduler.endswith("_with_warmup") and optim.num_warmup_epochs >= optim.max_epoch:
        beyond, optim["num_warmup_epochs"] = optim.num_warmup_epochs, optim.max_epoch // 10
        yield (
            f"optim.num_warmup_epochs = {beyond} would not end within optim.max_epoch = {optim.max_epoch}: "
            f"warm-up of {optim.num_warmup_epochs}, a tenth of the epochs"
        )
    if cfg.dataset.task_type == "regression" and not layers.get("model.loss_fun"):
        # GraphGym's default loss is for classification; it makes the same change.
        cfg.model["loss_fun"] = "mse"
    if cfg.dataset.name in ("MNIST", "CIFAR10") and not layers.get("dataset.edge_encoder_dim_in"):
        cfg.dataset["edge_encoder_dim_in"] = 1  # GraphGPS's own exception
    regression_of_yours = cfg.dataset.format == "csv" and cfg.dataset.task_type == "regression"
    if regression_of_yours and not layers.get("dataset.standardise"):
        cfg.dataset["standardise"] = True


def _switch_encodings(cfg: CfgNode, layers: Mapping[str, int], name: str) -> None:
    named = encodings(cfg)
    for encoding in known_encodings():
        group = cfg[f"posenc_{encoding}"]
        on, key = encoding in named, f"posenc_{encoding}.enable"
        newest = max(layers.get(NAME, 0), layers.get("dataset.node_encoder", 0))
        if group.enable != on and layers.get(key, 0) >= max(newest, 1):
            composed = cfg.dataset.node_encoder_name
            off = "" if cfg.dataset.node_encoder else " with dataset.node_encoder = False"
            remedy = f"name it there, such as {composed}+{encoding}"
            remedy = remedy if group.enable else f"leave {encoding} out there"
            raise ConfigError(
                f"{name}: {key} = {group.enable}: contradicts {NAME} = {composed}{off}; "
                f"{remedy}, or do not set {key}"
            )
        group["enable"] = on


def _set_up_encodings(cfg: CfgNode, layers: Mapping[str, int]) -> Iterator[str]:
    """Values for keys that an encoding needs, that upstream leaves empty and that were not set."""

    def untouched(key: str) -> bool:
        return layers.get(key, 0) < max(layers.get(NAME, 0), 1) and get(cfg, key) == SCHEMA[key].default

    for encoding in encodings(cfg):
        group = f"posenc_{encoding}."
        filled = {}
        whole = untouched(f"{group}model") if encoding in SET_UP else False
        for key, value in SET_UP.get(encoding, {}).items():
            given = key == "kernel.times_func" and cfg.posenc_RWSE.kernel.times
            if untouched(group + key) and (whole or key in NEEDED) and not given:
                put(cfg, group + key, value)
                filled[group + key] = value
        if filled:
            values = ", ".join(f"{key} = {value}" for key, value in filled.items())
            yield f"{encoding} is named in {NAME}, filled in: {values}"


def check(cfg: CfgNode, name: str = "config") -> None:
    """Raise the first problem, with ``name`` (the file) before it."""
    network = (_gps_layers, _gps_options, _graphormer)
    for rules in (_data, _task, *network, _encodings, _pearl, _pairs, _edges, _schedule):
        for problem in rules(cfg):
            raise ConfigError(f"{name}: {problem}")


def _parts(cfg: CfgNode) -> tuple[str, str]:
    """The local and the global part of a GPS layer; empty for other networks."""
    local, _, attention = cfg.gt.layer_type.partition("+")
    return (local, attention) if cfg.model.type == "GPSModel" else ("", "")


def _data(cfg: CfgNode) -> Iterator[str]:
    data = cfg.dataset
    if data.source == "path" and not data.path:
        yield "dataset.source = path: needs the file or folder in dataset.path, which is empty"
    if data.source in ("download", "embedded") and data.path:
        yield (
            f"dataset.path = {data.path}: would be ignored with dataset.source = {data.source}; "
            "set it to path or auto"
        )
    if data.format != "csv":
        return
    if not data.path:
        yield "dataset.path = '': expected the CSV file, as dataset.format = csv"
    if data.smiles_column in data.target_columns:
        yield f"dataset.target_columns = {data.target_columns}: has the column of SMILES among them"
    if len(set(data.target_columns)) < len(data.target_columns):
        yield f"dataset.target_columns = {data.target_columns}: names a column twice"
    if data.split_column and data.split_column in (data.smiles_column, *data.target_columns):
        yield f"dataset.split_column = {data.split_column}: is the column of SMILES or of a target"


def _task(cfg: CfgNode) -> Iterator[str]:
    task, regression = cfg.dataset.task_type, cfg.dataset.task_type == "regression"
    if cfg.dataset.standardise and not regression:
        yield f"dataset.standardise = True: is for regression, dataset.task_type is {task}; set it False"
    if cfg.gnn.head in GRAPH_HEADS and cfg.dataset.task != "graph":
        yield (
            f"dataset.task = {cfg.dataset.task}: gnn.head = {cfg.gnn.head} predicts for graphs; "
            "set dataset.task: graph"
        )
    if (cfg.gnn.head == "ogb_code_graph") != (task == "subtoken_prediction"):
        both = f"gnn.head = {cfg.gnn.head}, dataset.task_type = {task}: "
        yield f"{both}ogb_code_graph goes with subtoken_prediction, and with no other"
    for what, heads in (("node", NODE_HEADS), ("edge", EDGE_HEADS)):
        if cfg.gnn.head in heads and cfg.dataset.task not in (what, *_inductive(cfg.gnn.head)):
            yield (
                f"dataset.task = {cfg.dataset.task}: gnn.head = {cfg.gnn.head} predicts for {what}s; "
                f"set dataset.task: {what}"
            )
    for key, value, ours, others in (
        ("model.loss_fun", cfg.model.loss_fun, REGRESSION_LOSSES, CLASSIFICATION_LOSSES),
        ("metric_best", cfg.metric_best, METRICS["regression"], CLASSIFICATION_METRICS),
    ):
        fitting, wrong = (ours, others) if regression else (others, ours)
        if value in wrong:
            allowed = ", ".join(fitting)
            kind = "loss" if key == "model.loss_fun" else "metric"
            yield f"{key} = {value}: is no {kind} for dataset.task_type = {task}; expected {allowed}"
    metric = cfg.metric_best
    best = "argmin" if metric in SMALLER_IS_BETTER else "argmax"
    known = {"loss"}.union(*METRICS.values(), *EXTRA_METRICS.values())
    if metric in known and cfg.metric_agg != best:
        yield (
            f"metric_agg = {cfg.metric_agg}: would choose the worst epoch by metric_best = {metric}; "
            f"expected {best}"
        )


def _inductive(head: str) -> tuple[str, ...]:
    # GraphGPS's spelling of a task on the nodes or edges of many graphs.
    return ("graph",) if head.startswith("inductive_") else ()


def _gps_layers(cfg: CfgNode) -> Iterator[str]:
    if cfg.model.type == "custom_gnn" and cfg.gnn.stage_type not in STAGES:
        expected = ", ".join(STAGES)
        yield f"gnn.stage_type = {cfg.gnn.stage_type}: expected one of {expected} for model.type custom_gnn"
    gt, (local, attention), san = cfg.gt, _parts(cfg), cfg.model.type == "SANTransformer"
    if cfg.model.type != "GPSModel" and not san:
        return
    if san and gt.layer_type != "SANLayer":
        yield f"gt.layer_type = {gt.layer_type}: expected SANLayer for model.type SANTransformer"
    if not san and (local not in LOCAL_LAYERS or attention not in (*GLOBAL_LAYERS, BIASED)):
        known = {"+".join(pair).lower(): "+".join(pair) for pair in product(LOCAL_LAYERS, GLOBAL_LAYERS)}
        near = get_close_matches(gt.layer_type.lower(), known, n=1)
        yield (
            f"gt.layer_type = {gt.layer_type}: expected LOCAL+GLOBAL for model.type GPSModel, such as "
            f"{known[near[0]] if near else 'GINE+Transformer'}; local: {', '.join(LOCAL_LAYERS)}; "
            f"global: {', '.join(GLOBAL_LAYERS)}"
        )
    if gt.layer_type == "None+None":
        yield "gt.layer_type = None+None: expected a local or a global part that is not None"
    if gt.dim_hidden != cfg.gnn.dim_inner:
        yield f"gt.dim_hidden = {gt.dim_hidden}: must equal gnn.dim_inner, which is {cfg.gnn.dim_inner}"
    if gt.dim_hidden % gt.n_heads and (san or attention != "None" or local == "GAT"):
        width = gt.dim_hidden
        divisors = ", ".join(str(heads) for heads in range(1, min(width, 64) + 1) if width % heads == 0)
        yield f"gt.n_heads = {gt.n_heads}: must divide gt.dim_hidden, which is {width}; {divisors} do"
    if gt.batch_norm and gt.layer_norm:
        yield "gt.layer_norm = True: cannot go with gt.batch_norm = True; set one of them False"


def _gps_options(cfg: CfgNode) -> Iterator[str]:
    gt, (local, attention), kind = cfg.gt, _parts(cfg), cfg.model.type
    for key, off in (("attn_gate", "none"), ("degree_scaler", False), ("edge_update", False)):
        if gt[key] == off:
            continue
        if kind in NETWORKS and kind != "GPSModel":
            yield f"gt.{key} = {gt[key]}: model.type {kind} has no use for it; use GPSModel, or {off}"
        elif key != "edge_update" and attention == "None":
            yield (
                f"gt.{key} = {gt[key]}: acts on attention, and gt.layer_type = {gt.layer_type} has none; "
                f"use {local}+Transformer, or {off}"
            )
    if gt.edge_update and kind == "GPSModel":
        wrong = "gt.edge_update = True: "
        if not cfg.dataset.edge_encoder:
            yield f"{wrong}needs edge features; set dataset.edge_encoder True"
        if local == "CustomGatedGCN" or local in READ_NO_EDGES:
            reads = "updates its edges itself" if local == "CustomGatedGCN" else "reads no edge features"
            yield f"{wrong}{local} in gt.layer_type {reads}; use GINE+{attention}, or False"


def _graphormer(cfg: CfgNode) -> Iterator[str]:
    bias, settings, name = cfg.posenc_GraphormerBias, cfg.graphormer, cfg.dataset.node_encoder_name
    named, biased = "GraphormerBias" in encodings(cfg), _parts(cfg)[1] == BIASED
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
    if cfg.model.graph_pooling == "graph_token" and not token:
        yield "model.graph_pooling = graph_token: needs GraphormerBias and graphormer.use_graph_token True"
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


def _encodings(cfg: CfgNode) -> Iterator[str]:
    name, named = cfg.dataset.node_encoder_name, encodings(cfg)
    if not cfg.dataset.node_encoder and set(name.split("+")) & set(known_encodings()):
        yield f"dataset.node_encoder = False: would ignore dataset.node_encoder_name = {name}; set it True"
    widths = {}
    for encoding in named:
        group = cfg[f"posenc_{encoding}"]
        if "dim_pe" in group and group.get("inject", "input") == "input":
            widths[f"posenc_{encoding}.dim_pe"] = group.dim_pe
        if group.get("model", "") not in ENCODING_MODELS.get(encoding, ("",)):
            models = " or ".join(ENCODING_MODELS[encoding])
            yield f"posenc_{encoding}.model = {group.model}: expected {models}, as {encoding} is named"
        if group.get("model", "Linear") != "Linear" and group.layers < 1:
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
        local = MESSAGE_PASSING.get(layer, layer) if custom else _parts(cfg)[0]
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
    local, attention = _parts(cfg)
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


def _edges(cfg: CfgNode) -> Iterator[str]:
    for kind, name in (("node", "TypeDictNode"), ("edge", "TypeDictEdge")):
        used = cfg.dataset[f"{kind}_encoder"] and name in cfg.dataset[f"{kind}_encoder_name"].split("+")
        if used and not cfg.dataset[f"{kind}_encoder_num_types"]:
            yield f"dataset.{kind}_encoder_num_types = 0: {name} needs the number of {kind} types"
    if cfg.dataset.edge_encoder:
        if cfg.dataset.edge_encoder_name == "LinearEdge" and not cfg.dataset.edge_encoder_dim_in:
            yield "dataset.edge_encoder_dim_in = 0: LinearEdge needs the number of edge feature columns"
        return
    remedy = "set it True with dataset.edge_encoder_name Bond, TypeDictEdge, LinearEdge or DummyEdge"
    local, custom = _parts(cfg)[0], cfg.gnn.layer_type if cfg.model.type == "custom_gnn" else ""
    if local in NEED_EDGES:
        yield f"dataset.edge_encoder = False: {local} in gt.layer_type needs edge features; {remedy}"
    if cfg.model.type == "SANTransformer":
        yield f"dataset.edge_encoder = False: model.type SANTransformer needs edge features; {remedy}"
    if MESSAGE_PASSING.get(custom) in NEED_EDGES:
        yield f"dataset.edge_encoder = False: gnn.layer_type {custom} needs edge features; {remedy}"


def _schedule(cfg: CfgNode) -> Iterator[str]:
    optim = cfg.optim
    if optim.scheduler == "reduce_on_plateau" and optim.min_lr > optim.base_lr:
        yield f"optim.min_lr = {optim.min_lr:g}: must be at most optim.base_lr, which is {optim.base_lr:g}"
    if optim.scheduler == "step" and optim.steps != sorted(set(optim.steps)):
        yield f"optim.steps = {optim.steps}: expected rising numbers of epochs"
