"""A model at a glance: data, encoders and their costs, layers, parameters by part, a batch's memory and time.

Nothing of the dataset is read. Costs are those of a batch of stand-in molecules of the dataset's usual size,
run here and now: a forward pass, a training step, and the activations that the step keeps for its backward
pass.
"""

from __future__ import annotations

import statistics
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from yacs.config import CfgNode

from graphgps_pearl import encoders, networks
from graphgps_pearl.config.schema import SCHEMA
from graphgps_pearl.data import molecules
from graphgps_pearl.encoders.table import DATA_ENCODERS
from graphgps_pearl.inference.model import Model

#: Drug-like stand-ins of 21 to 31 atoms, and a chain of eighteen residues for peptides.
_DRUGS = (
    "CC(C)Cc1ccc(cc1)C(C)C(=O)Nc1ccccc1O",
    "CN1CCN(CC1)Cc1ccc(cc1)C(=O)Nc1ccc(C)c(c1)N",
    "COc1cc2ncnc(Nc3ccc(F)c(Cl)c3)c2cc1OCCCN1CCOCC1",
    "CC1=C(C(=O)Nc2ccccc2)SCCO1",
)
_PEPTIDES = ("N[C@@H](CC(C)C)C(=O)" * 18 + "O",)

#: What an encoding costs, in nodes N, edges E and its own settings.
_COSTS = {
    "RPEARL": "Θ(M N F² + M E F) a pass, nothing precomputed",
    "BPEARL": "Θ(N² F² + N E F) a pass and graph at most, nothing precomputed",
    "RWSE": "Θ(N³) a graph, once",
    "LapPE": "an eigendecomposition a graph, once",
    "SignNet": "an eigendecomposition a graph, once, and a GNN a pass",
    "SPE": "an eigendecomposition a graph, once, and a GNN a pass",
    "BasisNet": "an eigendecomposition a graph, once, and Θ(N²) a pass and eigenspace",
    "EquivStableLapPE": "an eigendecomposition a graph, once",
    "GSN": "a search for cycles and cliques a graph, once",
    "RandomID": "Θ(N) a pass",
}


@dataclass
class Costs:
    """Of one batch: seconds of a forward pass, of a training step and by encoder, bytes of activations."""

    graphs: int
    atoms: int
    forward: float
    step: float
    activations: int
    encoders: dict[str, float]


def describe_model(model: Model, *, timing: bool = True) -> str:
    """The description as text."""
    cfg, facts = model.cfg, model.facts
    costs = measure(model) if timing else None
    sections = [
        ("model", [f"{facts.name}, {'trained' if model.trained else 'untrained: a config'}"]),
        ("data", _data(model)),
        ("encoders", _encoders(model, costs)),
        ("layers", _layers(cfg, facts.task)),
        ("training", _training(cfg)),
        ("parameters", _parameters(model)),
    ]
    if costs is not None:
        sections.append(("one batch", _costs(model, costs)))
    if facts.metrics:
        sections.append(("errors", _metrics(facts.metrics)))
    lines = [
        f"{title if i == 0 else '':<12}{line}" for title, body in sections for i, line in enumerate(body)
    ]
    return "\n".join(lines)


def _data(model: Model) -> list[str]:
    cfg, facts = model.cfg, model.facts
    targets = ", ".join(facts.target_names[:4]) + (", ..." if len(facts.target_names) > 4 else "")
    subset = f", about {cfg.dataset.subset:,} graphs of it" if cfg.dataset.subset else ""
    lines = [
        f"{facts.dataset} ({cfg.dataset.format}{subset}), {facts.task_type} of {facts.dim_out} "
        f"target{'s' if facts.dim_out > 1 else ''}"
        + (f" for each {facts.task}" if facts.task != "graph" else "")
        + (f": {targets}" if targets else ""),
        f"features: {facts.dim_in} a node, {facts.edge_dim} an edge",
    ]
    if facts.target_mean is not None:
        lines.append("standardised targets; predictions are put back in their units")
    return lines


def _encoders(model: Model, costs: Costs | None) -> list[str]:
    cfg = model.cfg
    found = model.positional_encoders()
    lines = []
    for name in cfg.dataset.node_encoder_name.split("+") if cfg.dataset.node_encoder else []:
        if name not in found:
            what = "reads the nodes' features" if name in DATA_ENCODERS else "an encoder of yours"
            lines.append(f"{name}: {what}")
            continue
        count = sum(p.numel() for p in found[name].parameters() if p.requires_grad)
        spent = f", {1000 * costs.encoders[name]:.1f} ms of a forward pass" if costs else ""
        lines.append(f"{name}: {count:,} parameters{spent}")
        if name in _COSTS:
            lines.append(f"    cost {_COSTS[name]}")
        lines += textwrap.wrap(
            _settings(cfg[f"posenc_{name}"], f"posenc_{name}."),
            90,
            initial_indent="    ",
            subsequent_indent="    ",
        )
    if cfg.dataset.edge_encoder:
        lines.append(f"{cfg.dataset.edge_encoder_name}: reads the edges' features")
    return lines or ["none"]


def _settings(group: CfgNode, at: str, prefix: str = "") -> str:
    """The keys of the group at ``at`` that have an effect, with their values."""
    parts = []
    for key, value in group.items():
        entry = SCHEMA.get(f"{at}{prefix}{key}")
        if isinstance(value, CfgNode):
            parts.append(_settings(value, at, f"{prefix}{key}."))
        elif key != "enable" and (entry is None or entry.used):
            parts.append(f"{prefix}{key} {value}")
    return ", ".join(part for part in parts if part)


def _layers(cfg: CfgNode, task: str) -> list[str]:
    if cfg.model.type == "GPSModel":
        body = (
            f"{cfg.gt.layers} x {cfg.gt.layer_type}, {cfg.gt.dim_hidden} wide, {cfg.gt.n_heads} heads, "
            f"dropout {cfg.gt.dropout:g}, attention dropout {cfg.gt.attn_dropout:g}"
            + (f", gate per {cfg.gt.attn_gate}" if cfg.gt.attn_gate != "none" else "")
            + (", degree scaler" if cfg.gt.degree_scaler else "")
            + (", edges updated" if cfg.gt.edge_update else "")
        )
    elif cfg.model.type == "custom_gnn":
        body = f"{cfg.gnn.layers_mp} x {cfg.gnn.layer_type}, {cfg.gnn.dim_inner} wide"
    else:
        body = f"{cfg.model.type}, {cfg.gnn.dim_inner} wide"
    pooling = f"{cfg.model.graph_pooling} pooling, " if task == "graph" else ""
    return [f"{cfg.model.type}: {body}", f"{pooling}head {cfg.gnn.head}"]


def _training(cfg: CfgNode) -> list[str]:
    return [
        f"loss {cfg.model.loss_fun}, {cfg.optim.optimizer}, learning rate {cfg.optim.base_lr:g} "
        f"({cfg.optim.scheduler}), {cfg.optim.max_epoch} epochs, batches of {cfg.train.batch_size}"
    ]


def _parameters(model: Model) -> list[str]:
    parts = networks.count_parameters(model.network)
    total, budget = sum(parts.values()), model.cfg.train.max_params
    against = f" of the budget of {budget:,} ({100 * total / budget:.0f}%)" if budget else ", no budget"
    over = "  ABOVE THE BUDGET: training stops before it starts" if 0 < budget < total else ""
    return [f"{total:,}{against}{over}", ", ".join(f"{part} {count:,}" for part, count in parts.items())]


def _costs(model: Model, costs: Costs) -> list[str]:
    total = sum(p.numel() for p in model.network.parameters())
    # Weights, gradients and Adam's two moments in float32.
    fixed = 16 * total
    return [
        f"{costs.graphs} molecules of {costs.atoms / costs.graphs:.0f} atoms on {model.device}, "
        f"{torch.get_num_threads()} thread{'s' if torch.get_num_threads() > 1 else ''}: forward "
        f"{1000 * costs.forward:.0f} ms, training step {1000 * costs.step:.0f} ms (measured now)",
        f"about {(fixed + costs.activations) / 1e6:.0f} MB in training: {costs.activations / 1e6:.0f} MB of "
        f"activations, {fixed / 1e6:.1f} MB of weights, gradients and moments",
    ]


def _metrics(metrics: Any) -> list[str]:
    splits = [column.removesuffix("_loss") for column in metrics if column.endswith("_loss")]
    lines = []
    for split in splits:
        values = {c.removeprefix(f"{split}_"): v for c, v in metrics.items() if c.startswith(f"{split}_")}
        lines.append(f"{split}: " + ", ".join(f"{name} {value:.4f}" for name, value in values.items()))
    return lines


def measure(model: Model, repeats: int = 3) -> Costs:
    """Run a batch of stand-ins a few times and take the medians; weights and statistics stay as they are."""
    batch = Batch.from_data_list(stand_ins(model)).to(model.device)
    network, spent = model.network, dict.fromkeys(model.positional_encoders(), 0.0)
    kept = {name: value.clone() for name, value in network.state_dict().items()}
    seen: dict[int, int] = {}

    def forward() -> None:
        with torch.no_grad():
            model.outputs(batch)

    def step() -> None:
        model.outputs(batch).square().mean().backward()

    try:
        network.train()
        with torch.autograd.graph.saved_tensors_hooks(lambda t: _note(t, seen), lambda t: t):
            step()
        step_seconds = _median(step, repeats)
        network.eval()
        seconds = _median(forward, repeats)
        for name, encoder in model.positional_encoders().items():
            spent[name] = _median(partial(_encode, encoder, batch), repeats)
    finally:
        network.load_state_dict(kept)
        network.zero_grad(set_to_none=True)
        network.eval()
    weights = {p.untyped_storage().data_ptr() for p in network.parameters()}
    activations = sum(size for place, size in seen.items() if place not in weights)
    return Costs(batch.num_graphs, batch.num_nodes, seconds, step_seconds, activations, spent)


def _encode(encoder: Any, batch: Batch) -> None:
    with torch.no_grad():
        encoder.encode(batch)


def _note(tensor: Tensor, seen: dict[int, int]) -> Tensor:
    """Remember the size of what a tensor lives in, once."""
    storage = tensor.untyped_storage()
    seen[storage.data_ptr()] = storage.nbytes()
    return tensor


def _median(work: Callable[[], object], repeats: int) -> float:
    times = []
    work()  # the first one warms up
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def stand_ins(model: Model) -> list[Data]:
    """A batch of graphs as the dataset has them: real molecules where it has such, else their bare graphs."""
    cfg, facts = model.cfg, model.facts
    names = _PEPTIDES if "peptides" in facts.dataset.lower() else _DRUGS
    kind = next((k for k, d in molecules.FEATURES.items() if d == (facts.dim_in, facts.edge_dim)), None)
    transforms = encoders.required_transforms(cfg)
    made = []
    for smiles in names:
        graph = molecules.to_graph(molecules.parse(smiles), kind or "ogb")
        if kind is None:
            graph.x, graph.edge_attr = _other_features(cfg, graph, facts.dim_in, facts.edge_dim)
        for transform in transforms:
            graph = transform(graph)
        if facts.task == "edge":
            graph.edge_index_labeled, graph.edge_label = graph.edge_index, torch.zeros(graph.num_edges)
        made.append(graph)
    return [made[i % len(made)] for i in range(cfg.train.batch_size)]


def _other_features(cfg: CfgNode, graph: Data, dim_in: int, edge_dim: int) -> tuple[Tensor, Tensor | None]:
    """Types where the config says how many there are, else ones."""
    nodes, edges = int(graph.num_nodes or 0), int(graph.num_edges)
    types = cfg.dataset.node_encoder_num_types
    x = torch.arange(nodes).remainder(types).view(-1, 1) if types else torch.ones(nodes, dim_in)
    if not edge_dim:
        return x, None
    kinds = cfg.dataset.edge_encoder_num_types
    return x, torch.arange(edges).remainder(kinds) if kinds else torch.ones(edges, edge_dim)
