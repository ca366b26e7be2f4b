"""SMILES to the graphs that a model was trained on: the data's features, then the encoders' transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data
from yacs.config import CfgNode

from graphgps_pearl import encoders
from graphgps_pearl.data import BadRowError, molecules
from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.inference.facts import SMILES_FORMATS, ModelFacts

Featuriser = Callable[[str], tuple[Data, list[int]]]


def features_of(cfg: CfgNode, facts: ModelFacts) -> str:
    """The name of the features, ``ogb`` or ``attentivefp``; DataError where SMILES do not lead to them."""
    if facts.task != "graph":
        raise DataError(
            f"{facts.name} predicts for the {facts.task}s of a graph, not for molecules; predict_graphs "
            f"takes graphs "
            f"of {facts.dataset}"
        )
    if cfg.dataset.format == "PyG-ZINC":
        raise DataError(
            f"{facts.name} was trained on ZINC's own graphs, whose 28 atom types and Kekulé bonds come from "
            "its public files and not from SMILES; give predict_graphs such graphs, or train on a csv or "
            "embedded dataset to predict SMILES"
        )
    for name, dims in molecules.FEATURES.items():
        if cfg.dataset.format in SMILES_FORMATS and dims == (facts.dim_in, facts.edge_dim):
            return name
    raise DataError(
        f"{facts.name} was trained on {facts.dataset} ({cfg.dataset.format}), whose graphs are not made from "
        "SMILES; predict_graphs takes its graphs"
    )


def reads_smiles(cfg: CfgNode, facts: ModelFacts) -> bool:
    """Whether the model's graphs can be made from SMILES."""
    try:
        features_of(cfg, facts)
    except DataError:
        return False
    return True


def featuriser(cfg: CfgNode, facts: ModelFacts) -> Featuriser:
    """A function from one SMILES to its graph, and to the number that each node's atom has in the SMILES.

    The graph does not depend on the spelling, unless the model was trained on spellings as published. Where
    there is no graph, BadRowError is raised.
    """
    features = features_of(cfg, facts)
    transforms = encoders.required_transforms(cfg)

    def graph_of(smiles: str) -> tuple[Data, list[int]]:
        if not isinstance(smiles, str):
            raise BadRowError(f"the SMILES is {smiles!r}, which is not text")
        graph, order = molecules.spelled_graph(molecules.parse(smiles), cfg.dataset.format, features)
        for transform in transforms:
            try:
                graph = transform(graph)
            except (ValueError, RuntimeError, IndexError) as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                raise BadRowError(f"{type(transform).__name__}: {reason}") from error
        return graph, order

    return graph_of


def prepare_graph(
    graph: Data,
    number: int,
    cfg: CfgNode,
    facts: ModelFacts,
    transforms: Sequence[Callable[[Data], Data]],
) -> Data:
    """A user's graph with what the encoders need; DataError where it is unlike those of the training."""

    def require(fits: bool, otherwise: str) -> None:
        if not fits:
            raise DataError(f"graph {number}: {otherwise}; {facts.name} was trained on {facts.dataset}")

    require(isinstance(graph, Data), f"is a {type(graph).__name__}, not PyG's Data")
    x, edges = graph.x, graph.edge_index
    require(x is not None and edges is not None, "has no x or no edge_index")
    assert x is not None and edges is not None
    require(len(x) > 0, "has no nodes")
    x = x.view(len(x), -1)

    def require_pairs(name: str, pairs: Tensor, count: str) -> None:
        kind, shape = str(pairs.dtype).removeprefix("torch."), list(pairs.shape)
        whole = not pairs.is_floating_point() and len(shape) == 2 and shape[0] == 2
        require(whole, f"{name} is {kind} {shape}, not integers [2, {count}]")
        inside = bool(((pairs >= 0) & (pairs < len(x))).all())
        require(inside, f"{name} names nodes beyond the {len(x)} of x")

    require_pairs("edge_index", edges, "edges")
    require(x.size(1) == facts.dim_in, f"x has {x.size(1)} columns, not {facts.dim_in}")
    kept = Data(x=x, edge_index=edges)
    if facts.edge_dim:
        require(graph.edge_attr is not None, "has no edge_attr")
        shape = list(graph.edge_attr.shape)
        fits = shape == [edges.size(1), facts.edge_dim] or (facts.edge_dim == 1 and shape == [edges.size(1)])
        require(fits, f"edge_attr is {shape}, not {[edges.size(1), facts.edge_dim]}")
        kept.edge_attr = graph.edge_attr.view(edges.size(1), facts.edge_dim)
    if facts.task == "edge":
        require("edge_index_labeled" in graph, "has no edge_index_labeled, the pairs to predict for")
        require_pairs("edge_index_labeled", graph.edge_index_labeled, "pairs")
        kept.edge_index_labeled = graph.edge_index_labeled
        kept.edge_label = torch.zeros(graph.edge_index_labeled.size(1))
    if cfg.dataset.subgraph_hops or cfg.dataset.subgraph_parts:
        numbers = graph.n_id if "n_id" in graph else torch.arange(len(x), device=x.device)
        kind, shape = str(numbers.dtype).removeprefix("torch."), list(numbers.shape)
        whole = not numbers.is_floating_point() and shape == [len(x)]
        require(whole, f"n_id is {kind} {shape}, not integers {[len(x)]}")
        kept.n_id = numbers
    try:
        encoders.check_features(cfg, kept)
    except UserError as error:
        raise DataError(f"graph {number}: {error}") from error
    for transform in transforms:
        kept = transform(kept)
    return kept
