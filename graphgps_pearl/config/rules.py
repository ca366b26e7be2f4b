"""Combinations of keys that cannot work, each a rule of a few lines.

A rule gets the whole config and returns what is wrong and how to mend it, or None. Rules see values only
and hold for the defaults. Names that others may register (encoders, networks, heads) are not for here.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from yacs.config import CfgNode

from graphgps_pearl.config.groups.gt import GLOBAL, LOCAL
from graphgps_pearl.config.resolving import encodings, known_encodings
from graphgps_pearl.config.times import kernel_times
from graphgps_pearl.errors import ConfigError

Rule = Callable[[CfgNode], str | None]
RULES: list[Rule] = []

# What each word is for; words that are in neither tuple are somebody else's.
Names = tuple[str, ...]
REGRESSION_LOSSES: Names = ("l1", "mse", "smoothl1")
CLASSIFICATION_LOSSES: Names = ("cross_entropy", "weighted_cross_entropy")
ERRORS: Names = ("mae", "rmse", "loss")
REGRESSION_METRICS: Names = ("mae", "rmse", "r2", "spearmanr")
CLASSIFICATION_METRICS: Names = ("accuracy", "auc", "ap", "f1")
NEEDS_EDGES: Names = ("GINE", "CustomGatedGCN")
READS_NO_EDGES: Names = (
    *("None", "GCN", "GIN", "gcnconv", "ginconv"),
    *("generalconv", "sageconv", "linear", "mlp"),  # of GraphGym
)


def check(cfg: CfgNode, name: str) -> None:
    """Raise the first rule's complaint, with ``name`` (the file) before it."""
    for rule in RULES:
        wrong = rule(cfg)
        if wrong:
            raise ConfigError(f"{name}: {wrong}")


def _rule(function: Rule) -> Rule:
    RULES.append(function)
    return function


def _local(cfg: CfgNode) -> str:
    return cfg.gt.layer_type.partition("+")[0] if cfg.model.type == "GPSModel" else ""


def _global(cfg: CfgNode) -> str:
    return cfg.gt.layer_type.partition("+")[2] if cfg.model.type == "GPSModel" else ""


@_rule
def _layer_type_is_local_and_global(cfg: CfgNode) -> str | None:
    if cfg.model.type != "GPSModel" or (_local(cfg) in LOCAL and _global(cfg) in GLOBAL):
        return None
    known = {
        f"{local}+{attention}".lower(): f"{local}+{attention}" for local in LOCAL for attention in GLOBAL
    }
    near = get_close_matches(cfg.gt.layer_type.lower(), known, n=1)
    example = known[near[0]] if near else "GINE+Transformer"
    return (
        f"gt.layer_type = {cfg.gt.layer_type}: expected LOCAL+GLOBAL for model.type GPSModel, such as "
        f"{example}; local: {', '.join(LOCAL)}; global: {', '.join(GLOBAL)}"
    )


@_rule
def _layers_do_something(cfg: CfgNode) -> str | None:
    if cfg.model.type == "GPSModel" and cfg.gt.layer_type == "None+None":
        return "gt.layer_type = None+None: expected a local or a global part that is not None"
    return None


@_rule
def _widths_are_equal(cfg: CfgNode) -> str | None:
    if cfg.model.type == "GPSModel" and cfg.gt.dim_hidden != cfg.gnn.dim_inner:
        return f"gt.dim_hidden = {cfg.gt.dim_hidden}: must equal gnn.dim_inner, which is {cfg.gnn.dim_inner}"
    return None


@_rule
def _heads_divide_the_width(cfg: CfgNode) -> str | None:
    heads, width = cfg.gt.n_heads, cfg.gt.dim_hidden
    if width % heads and (_global(cfg) != "None" or _local(cfg) == "GAT") and cfg.model.type == "GPSModel":
        return f"gt.n_heads = {heads}: must divide gt.dim_hidden, which is {width}; {_divisors(width)} do"
    return None


def _divisors(width: int) -> str:
    return ", ".join(str(heads) for heads in range(1, min(width, 64) + 1) if width % heads == 0)


@_rule
def _one_norm(cfg: CfgNode) -> str | None:
    if cfg.model.type == "GPSModel" and cfg.gt.batch_norm and cfg.gt.layer_norm:
        return "gt.layer_norm = True: cannot go with gt.batch_norm = True; set one of them False"
    return None


@_rule
def _named_encodings_need_the_encoder(cfg: CfgNode) -> str | None:
    name = cfg.dataset.node_encoder_name
    if not cfg.dataset.node_encoder and set(name.split("+")) & set(known_encodings()):
        return f"dataset.node_encoder = False: would ignore dataset.node_encoder_name = {name}; set it True"
    return None


@_rule
def _encodings_fit_the_width(cfg: CfgNode) -> str | None:
    widths = {}
    for encoding in encodings(cfg):
        group = cfg[f"posenc_{encoding}"]
        if "dim_pe" in group and group.get("inject", "input") == "input":
            widths[f"posenc_{encoding}.dim_pe"] = group.dim_pe
    if sum(widths.values()) <= cfg.gnn.dim_inner:
        return None
    written = " + ".join(f"{key} = {width}" for key, width in widths.items())
    total = f" (in sum {sum(widths.values())})" if len(widths) > 1 else ""
    return f"{written}{total}: must be at most gnn.dim_inner, which is {cfg.gnn.dim_inner}"


@_rule
def _encodings_have_a_network(cfg: CfgNode) -> str | None:
    models = {"LapPE": "DeepSet or Transformer", "RWSE": "Linear or MLP", "SignNet": "DeepSet or MLP"}
    for encoding in encodings(cfg):
        if encoding in models and cfg[f"posenc_{encoding}"].model == "none":
            return f"posenc_{encoding}.model = none: expected {models[encoding]}, as {encoding} is named"
    return None


@_rule
def _walks_have_steps(cfg: CfgNode) -> str | None:
    if "RWSE" in encodings(cfg) and not kernel_times(cfg.posenc_RWSE.kernel):
        return "posenc_RWSE.kernel.times = []: expected steps of the walk, such as times_func: range(1,21)"
    return None


@_rule
def _encoding_heads_divide(cfg: CfgNode) -> str | None:
    heads, width = cfg.posenc_LapPE.n_heads, cfg.posenc_LapPE.dim_pe
    if "LapPE" in encodings(cfg) and cfg.posenc_LapPE.model == "Transformer" and width % heads:
        return f"posenc_LapPE.n_heads = {heads}: must divide posenc_LapPE.dim_pe, which is {width}"
    return None


@_rule
def _signnet_mlp_has_a_fixed_size(cfg: CfgNode) -> str | None:
    group = cfg.posenc_SignNet
    if "SignNet" in encodings(cfg) and group.model == "MLP" and not group.eigen.max_freqs:
        return (
            "posenc_SignNet.eigen.max_freqs = 0: an MLP needs a fixed number; give one, or use model: DeepSet"
        )
    return None


@_rule
def _phi_has_layers(cfg: CfgNode) -> str | None:
    for encoding in ("RPEARL", "BPEARL"):
        group = f"posenc_{encoding}"
        if encoding in encodings(cfg) and not cfg[group].num_layers and not cfg[group].num_taps:
            return f"{group}.num_layers = 0: needs {group}.num_taps >= 1, or Φ has no layer at all"
    return None


@_rule
def _the_tap_diagonal_has_taps(cfg: CfgNode) -> str | None:
    group = cfg.posenc_BPEARL
    if "BPEARL" in encodings(cfg) and group.tap_diagonal and group.num_taps < 2:
        return f"posenc_BPEARL.tap_diagonal = True: needs num_taps >= 2, which is {group.num_taps}"
    return None


@_rule
def _the_network_takes_more_than_an_input(cfg: CfgNode) -> str | None:
    if cfg.model.type != "gnn":
        return None
    for encoding in encodings(cfg):
        group = cfg.get(f"posenc_{encoding}", {})
        for key, at_the_input in (("inject", "input"), ("pair_bias", "none"), ("pair_edges", False)):
            if group.get(key, at_the_input) != at_the_input:
                return (
                    f"posenc_{encoding}.{key} = {group[key]}: GraphGym's model.type gnn has no place for it; "
                    f"use GPSModel or custom_gnn, or {at_the_input}"
                )
    return None


@_rule
def _pair_bias_has_logits(cfg: CfgNode) -> str | None:
    kind = cfg.posenc_BPEARL.pair_bias
    if "BPEARL" not in encodings(cfg) or kind == "none":
        return None
    wrong = f"posenc_BPEARL.pair_bias = {kind}: "
    if cfg.model.type == "custom_gnn":
        return f"{wrong}model.type custom_gnn has no attention to add it to; use GPSModel, or none"
    if _global(cfg) == "Performer":
        return f"{wrong}Performer never forms the logits it would be added to; use Transformer, or none"
    if cfg.model.type == "GPSModel" and _global(cfg) == "None":
        return f"{wrong}gt.layer_type = {cfg.gt.layer_type} has no attention; use Transformer, or none"
    return None


@_rule
def _pair_edges_have_edges(cfg: CfgNode) -> str | None:
    if "BPEARL" not in encodings(cfg) or not cfg.posenc_BPEARL.pair_edges:
        return None
    wrong = "posenc_BPEARL.pair_edges = True: "
    if not cfg.dataset.edge_encoder:
        return f"{wrong}needs edge features to add to; set dataset.edge_encoder True"
    local = cfg.gnn.layer_type if cfg.model.type == "custom_gnn" else _local(cfg)
    if local in READS_NO_EDGES:
        return f"{wrong}{local} reads no edge features; use GINE or CustomGatedGCN (gineconv, gatedgcnconv)"
    return None


@_rule
def _chunks_need_no_batch_norm(cfg: CfgNode) -> str | None:
    group = cfg.posenc_RPEARL
    chunked = 0 < group.chunk_size < group.num_samples
    if "RPEARL" in encodings(cfg) and chunked and group.norm in ("batch", "graph"):
        return (
            f"posenc_RPEARL.chunk_size = {group.chunk_size}: posenc_RPEARL.norm = {group.norm} would differ "
            "from chunk to chunk; use norm: layer or none, or chunk_size: 0"
        )
    return None


@_rule
def _peg_has_edges_to_weigh(cfg: CfgNode) -> str | None:
    if "EquivStableLapPE" not in encodings(cfg) or _local(cfg) in ("", "GINE", "CustomGatedGCN"):
        return None
    return (
        f"gt.layer_type = {cfg.gt.layer_type}: EquivStableLapPE weighs the edges of GINE or CustomGatedGCN; "
        "use one of them as the local part"
    )


@_rule
def _types_are_counted(cfg: CfgNode) -> str | None:
    for kind, name in (("node", "TypeDictNode"), ("edge", "TypeDictEdge")):
        used = cfg.dataset[f"{kind}_encoder"] and name in cfg.dataset[f"{kind}_encoder_name"].split("+")
        if used and not cfg.dataset[f"{kind}_encoder_num_types"]:
            return f"dataset.{kind}_encoder_num_types = 0: {name} needs the number of {kind} types"
    return None


@_rule
def _edges_are_encoded(cfg: CfgNode) -> str | None:
    if cfg.dataset.edge_encoder:
        return None
    mend = "set it True with dataset.edge_encoder_name Bond, TypeDictEdge, LinearEdge or DummyEdge"
    if _local(cfg) in NEEDS_EDGES:
        return f"dataset.edge_encoder = False: {_local(cfg)} in gt.layer_type needs edge features; {mend}"
    if cfg.model.type == "custom_gnn" and cfg.gnn.layer_type in ("gineconv", "gatedgcnconv"):
        return (
            f"dataset.edge_encoder = False: gnn.layer_type {cfg.gnn.layer_type} needs edge features; {mend}"
        )
    return None


@_rule
def _loss_fits_the_task(cfg: CfgNode) -> str | None:
    loss, task = cfg.model.loss_fun, cfg.dataset.task_type
    if task == "regression" and loss in CLASSIFICATION_LOSSES:
        allowed = REGRESSION_LOSSES
    elif task != "regression" and loss in REGRESSION_LOSSES:
        allowed = CLASSIFICATION_LOSSES[:1]
    else:
        return None
    return (
        f"model.loss_fun = {loss}: is no loss for dataset.task_type = {task}; expected {', '.join(allowed)}"
    )


@_rule
def _metric_fits_the_task(cfg: CfgNode) -> str | None:
    metric, task = cfg.metric_best, cfg.dataset.task_type
    if task == "regression" and metric in CLASSIFICATION_METRICS:
        allowed = REGRESSION_METRICS
    elif task != "regression" and metric in REGRESSION_METRICS:
        allowed = CLASSIFICATION_METRICS
    else:
        return None
    return (
        f"metric_best = {metric}: is no metric for dataset.task_type = {task}; expected {', '.join(allowed)}"
    )


@_rule
def _best_is_not_worst(cfg: CfgNode) -> str | None:
    metric, given = cfg.metric_best, cfg.metric_agg
    if metric not in (*ERRORS, *REGRESSION_METRICS, *CLASSIFICATION_METRICS):
        return None
    best = "argmin" if metric in ERRORS else "argmax"
    if given != best:
        return (
            f"metric_agg = {given}: would choose the worst epoch by metric_best = {metric}; expected {best}"
        )
    return None


@_rule
def _graph_head_for_graph_task(cfg: CfgNode) -> str | None:
    head, task = cfg.gnn.head, cfg.dataset.task
    if head in ("graph", "san_graph", "mlp_graph") and task != "graph":
        return f"dataset.task = {task}: gnn.head = {head} predicts for graphs; set dataset.task: graph"
    return None


@_rule
def _warmup_ends(cfg: CfgNode) -> str | None:
    warmup, epochs = cfg.optim.num_warmup_epochs, cfg.optim.max_epoch
    if cfg.optim.scheduler.endswith("_with_warmup") and warmup >= epochs:
        return f"optim.num_warmup_epochs = {warmup}: must be less than optim.max_epoch, which is {epochs}"
    return None


@_rule
def _rate_can_fall(cfg: CfgNode) -> str | None:
    least, first = cfg.optim.min_lr, cfg.optim.base_lr
    if cfg.optim.scheduler == "reduce_on_plateau" and least > first:
        return f"optim.min_lr = {least:g}: must be at most optim.base_lr, which is {first:g}"
    return None


@_rule
def _steps_rise(cfg: CfgNode) -> str | None:
    steps = cfg.optim.steps
    if cfg.optim.scheduler == "step" and steps != sorted(set(steps)):
        return f"optim.steps = {steps}: expected rising numbers of epochs"
    return None


@_rule
def _path_and_source_agree(cfg: CfgNode) -> str | None:
    source, path = cfg.dataset.source, cfg.dataset.path
    if source == "path" and not path:
        return "dataset.source = path: needs the file or folder in dataset.path, which is empty"
    if source in ("download", "embedded") and path:
        return (
            f"dataset.path = {path}: would be ignored with dataset.source = {source}; set it to path or auto"
        )
    return None


@_rule
def _csv_is_named(cfg: CfgNode) -> str | None:
    data = cfg.dataset
    if data.format != "csv":
        return None
    if not data.path:
        return "dataset.path = '': expected the CSV file, as dataset.format = csv"
    if data.smiles_column in data.target_columns:
        return f"dataset.target_columns = {data.target_columns}: has the column of SMILES among them"
    if len(set(data.target_columns)) < len(data.target_columns):
        return f"dataset.target_columns = {data.target_columns}: names a column twice"
    if data.split_column and data.split_column in (data.smiles_column, *data.target_columns):
        return f"dataset.split_column = {data.split_column}: is the column of SMILES or of a target"
    return None
