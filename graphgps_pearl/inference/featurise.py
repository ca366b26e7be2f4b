"""SMILES to the graphs that a model was trained on: the data's features, then the encoders' transforms."""

from __future__ import annotations

from collections.abc import Callable

from torch_geometric.data import Data
from yacs.config import CfgNode

from graphgps_pearl import encoders
from graphgps_pearl.data import BadRowError, molecules
from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.facts import SMILES_FORMATS, ModelFacts

Featuriser = Callable[[str], tuple[Data, list[int]]]
#: Formats whose published SMILES were featurised as they are spelled. A model of them has learned what OGB's
#: chirality means in that spelling, which a canonical one would change.
_SPELLED_AS_PUBLISHED = ("OGB", "PyG-LRGB")


def features_of(cfg: CfgNode, facts: ModelFacts) -> str:
    """The name of the features, ``ogb`` or ``attentivefp``; DataError where SMILES do not lead to them."""
    if cfg.dataset.format == "PyG-ZINC":
        raise DataError(
            f"{facts.name} was trained on ZINC's own graphs, whose 28 atom types and Kekulé bonds come from "
            "its public files and not from SMILES; train on a csv or embedded dataset to predict SMILES"
        )
    for name, dims in molecules.FEATURES.items():
        if cfg.dataset.format in SMILES_FORMATS and dims == (facts.dim_in, facts.edge_dim):
            return name
    raise DataError(
        f"{facts.name} was trained on {facts.dataset} ({cfg.dataset.format}), whose graphs are not made from "
        "SMILES, so there is nothing to feed it with"
    )


def featuriser(cfg: CfgNode, facts: ModelFacts) -> Featuriser:
    """A function from one SMILES to its graph, and to the number that each node's atom has in the SMILES.

    The graph does not depend on the spelling, unless the model was trained on spellings as published. Where
    there is no graph, BadRowError is raised.
    """
    features = features_of(cfg, facts)
    transforms = encoders.required_transforms(cfg)

    def graph_of(smiles: str) -> tuple[Data, list[int]]:
        molecule = molecules.parse(smiles.strip())
        order = list(range(molecule.GetNumAtoms()))
        if cfg.dataset.format not in _SPELLED_AS_PUBLISHED:
            molecule, order = molecules.canonical(molecule)
        graph = molecules.to_graph(molecule, features)
        for transform in transforms:
            try:
                graph = transform(graph)
            except (ValueError, RuntimeError, IndexError) as error:
                reason = (str(error).splitlines() or [type(error).__name__])[0]
                raise BadRowError(f"{type(transform).__name__}: {reason}") from error
        return graph, order

    return graph_of
