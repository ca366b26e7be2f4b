"""The combinations of keys that cannot work.

Rules read the config alone; what depends on tensors is checked by the module that has them, and names that
others may register (encoders, networks, heads) where they are looked up.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import product

from yacs.config import CfgNode

from graphgps_pearl.config.encoding_rules import encoding_problems
from graphgps_pearl.config.resolving import layer_parts
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.vocabulary import (
    BIASED,
    CLASSIFICATION_LOSSES,
    EDGE_HEADS,
    EXTRA_METRICS,
    GLOBAL_LAYERS,
    GRAPH_HEADS,
    GRAPHGYM_READS_EDGE_DIM,
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

CLASSIFICATION_METRICS = ("accuracy", "auc", "ap", "f1")


def check(cfg: CfgNode, name: str = "config") -> None:
    """Raise the first problem, with ``name`` (the file) before it."""
    for rules in (_data, _task, _gps_layers, _gps_options, encoding_problems, _edges, _schedule):
        for problem in rules(cfg):
            raise ConfigError(f"{name}: {problem}")


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
    gt, (local, attention), san = cfg.gt, layer_parts(cfg), cfg.model.type == "SANTransformer"
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
            f"global: {', '.join((*GLOBAL_LAYERS, BIASED))}"
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
    gt, (local, attention), kind = cfg.gt, layer_parts(cfg), cfg.model.type
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


def _edges(cfg: CfgNode) -> Iterator[str]:
    for kind, name in (("node", "TypeDictNode"), ("edge", "TypeDictEdge")):
        used = cfg.dataset[f"{kind}_encoder"] and name in cfg.dataset[f"{kind}_encoder_name"].split("+")
        if used and not cfg.dataset[f"{kind}_encoder_num_types"]:
            yield f"dataset.{kind}_encoder_num_types = 0: {name} needs the number of {kind} types"
    if cfg.dataset.edge_encoder:
        if cfg.dataset.edge_encoder_name == "LinearEdge" and not cfg.dataset.edge_encoder_dim_in:
            yield "dataset.edge_encoder_dim_in = 0: LinearEdge needs the number of edge feature columns"
        layer, width, has = cfg.gnn.layer_type, cfg.gnn.dim_inner, cfg.dataset.edge_dim
        graphgyms = cfg.model.type in ("custom_gnn", "gnn") and layer in GRAPHGYM_READS_EDGE_DIM
        if graphgyms and has != width:
            yield f"dataset.edge_dim = {has}: must equal gnn.dim_inner = {width} for gnn.layer_type {layer}"
        return
    remedy = "set it True with dataset.edge_encoder_name Bond, TypeDictEdge, LinearEdge or DummyEdge"
    local, custom = layer_parts(cfg)[0], cfg.gnn.layer_type if cfg.model.type == "custom_gnn" else ""
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
    if cfg.pretrained.freeze_main and not cfg.pretrained.dir:
        yield "pretrained.freeze_main = True: needs trained weights to freeze; set pretrained.dir to a run"
