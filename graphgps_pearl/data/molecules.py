"""Molecules to graphs: OGB's integer features, and the 39/10-dimensional AttentiveFP set of the DrugOOD
papers.

Every bond gives two directed edges, i -> j and j -> i, next to each other. RDKit is imported on first use,
so that datasets without molecules do not need it loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphgps_pearl.data.base import BadRowError
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.ogb_features import ogb_features

#: name -> (dim_in, edge_dim)
FEATURES = {"ogb": (9, 3), "attentivefp": (39, 10)}

_ELEMENTS = ("B", "C", "N", "O", "F", "Si", "P", "S", "Cl", "As", "Se", "Br", "Te", "I", "At")
#: Formats and features whose molecules keep their published spelling. OGB's chirality depends on the order of
#: the atoms, and AttentiveFP counts the hydrogens of ``C`` but not those of ``[CH]``: made from the canonical
#: SMILES, the graphs would be other than the published ones.
_AS_SPELLED = (("OGB", "ogb"), ("PyG-LRGB", "ogb"), ("DrugOOD", "attentivefp"), ("embedded", "attentivefp"))
_MAX_SHOWN = 60
#: No white space, except before the extensions of a CXSMILES: ``C[CH2] |^1:1|``.
_ONE_SMILES = re.compile(r"\S+(\s+\|.*\|)?")


def versions() -> dict[str, str]:
    """The libraries whose version may change a molecule's graph."""
    from rdkit import rdBase

    return {"rdkit": rdBase.rdkitVersion}


def feature_dims(features: str) -> tuple[int, int]:
    """Width of node and edge features."""
    if features not in FEATURES:
        raise ConfigError(
            f"dataset.features: {features!r} is not known; known are {', '.join(sorted(FEATURES))}"
        )
    return FEATURES[features]


def shorten(text: str) -> str:
    """A SMILES or cell as error messages show it."""
    text = text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
    return repr(text)


def parse(smiles: str) -> Any:
    """An RDKit molecule with at least one atom; BadRowError otherwise. RDKit's own complaints stay quiet."""
    from rdkit import Chem, rdBase

    text = smiles.strip()
    if not text:
        raise BadRowError("the SMILES is empty")
    if not _ONE_SMILES.fullmatch(text):
        raise BadRowError(f"the SMILES {shorten(text)} does not parse: white space within it would end it")
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(text)
    if molecule is None:
        raise BadRowError(f"the SMILES {shorten(smiles)} does not parse")
    if molecule.GetNumAtoms() == 0:
        raise BadRowError(f"the SMILES {shorten(smiles)} has no atoms")
    return molecule


def canonical(molecule: Any) -> tuple[Any, list[int]]:
    """The molecule as its canonical SMILES spells it, and what number each of its atoms has in ``molecule``.

    OGB's chirality says which way the other neighbours turn in the order in which the SMILES names them, and
    random samples are drawn atom by atom: both depend on the spelling, so it is made one and the same.
    """
    from rdkit import Chem, rdBase

    text = Chem.MolToSmiles(molecule)
    order = list(molecule.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    with rdBase.BlockLogs():
        spelled = Chem.MolFromSmiles(text)
    if spelled is None or spelled.GetNumAtoms() != len(order):  # RDKit cannot read all that it writes
        return molecule, list(range(molecule.GetNumAtoms()))
    return spelled, order


def to_graph(molecule: Any, features: str) -> Data:
    """x [N, dim_in], edge_index [2, E], edge_attr [E, edge_dim]; long for ``ogb``, float for
    ``attentivefp``."""
    dim_in, edge_dim = feature_dims(features)
    atom_row, bond_row, dtype = _FEATURISERS[features]()
    # Flat lists and numpy: nested lists cost torch more than the chemistry costs RDKit.
    atoms = [value for i in range(molecule.GetNumAtoms()) for value in atom_row(molecule.GetAtomWithIdx(i))]
    ends: list[int] = []
    bonds: list[int] = []
    for i in range(molecule.GetNumBonds()):
        bond = molecule.GetBondWithIdx(i)
        begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        ends += (begin, end, end, begin)
        bonds += bond_row(bond)
    edge_index = np.array(ends, dtype=np.int64).reshape(-1, 2).T.copy()
    edge_rows = np.array(bonds, dtype=np.int64).reshape(-1, edge_dim).repeat(2, axis=0)
    return Data(
        x=torch.from_numpy(np.array(atoms, dtype=np.int64).reshape(-1, dim_in)).to(dtype),
        edge_index=torch.from_numpy(edge_index),
        edge_attr=torch.from_numpy(edge_rows).to(dtype),
    )


_Rows = tuple[Callable[[Any], list[int]], Callable[[Any], list[int]], torch.dtype]


@cache
def _ogb() -> _Rows:
    """OGB's nine atom and three bond columns; values outside a column's list take its last place."""
    ogb = ogb_features()

    def bond_row(bond: Any) -> list[int]:
        try:
            return list(ogb.bond_to_feature_vector(bond))
        except ValueError:
            raise BadRowError(
                f"bond {bond.GetIdx()} has stereo {bond.GetStereo()}, which OGB's features do not know"
            ) from None

    return ogb.atom_to_feature_vector, bond_row, torch.long


@cache
def _attentivefp() -> _Rows:
    """39 atom columns: 16 elements (the last: any other), 6 degrees, charge, radical electrons, 6
    hybridisations (the last: any other), aromatic, 5 counts of implicit hydrogens, chirality possible, R, S.
    10 bond columns: 4 types, conjugated, in ring, 4 stereo."""
    from rdkit.Chem import rdchem

    elements = {symbol: i for i, symbol in enumerate(_ELEMENTS)}
    hybridisation = {getattr(rdchem.HybridizationType, name): i for i, name in enumerate(_HYBRIDISATION)}
    types = {getattr(rdchem.BondType, name): i for i, name in enumerate(_BOND_TYPES)}
    stereo = {getattr(rdchem.BondStereo, name): i for i, name in enumerate(_ATTENTIVEFP_STEREO)}

    def atom_row(atom: Any) -> list[int]:
        row = [0] * 39
        degree, hydrogens = atom.GetDegree(), atom.GetNumImplicitHs()
        if degree > 5:
            raise BadRowError(f"atom {atom.GetIdx()} ({atom.GetSymbol()}) has degree {degree}, above 5")
        if hydrogens > 4:
            raise BadRowError(f"atom {atom.GetIdx()} ({atom.GetSymbol()}) has {hydrogens} hydrogens, above 4")
        row[elements.get(atom.GetSymbol(), 15)] = 1
        row[16 + degree] = 1
        row[22] = atom.GetFormalCharge()
        row[23] = atom.GetNumRadicalElectrons()
        row[24 + hybridisation.get(atom.GetHybridization(), 5)] = 1
        row[30] = int(atom.GetIsAromatic())
        row[31 + hydrogens] = 1
        if atom.HasProp("_ChiralityPossible"):
            row[36] = 1
            if atom.HasProp("_CIPCode") and atom.GetProp("_CIPCode") in "RS":
                row[37 + "RS".index(atom.GetProp("_CIPCode"))] = 1
        return row

    def bond_row(bond: Any) -> list[int]:
        row = [0] * 10
        kind, side = bond.GetBondType(), bond.GetStereo()
        if kind not in types:
            raise BadRowError(f"bond {bond.GetIdx()} is {kind}, not single, double, triple or aromatic")
        if side not in stereo:
            raise BadRowError(f"bond {bond.GetIdx()} has stereo {side}, not none, any, Z or E")
        row[types[kind]] = 1
        row[4] = int(bond.GetIsConjugated())
        row[5] = int(bond.IsInRing())
        row[6 + stereo[side]] = 1
        return row

    return atom_row, bond_row, torch.float


_HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
_BOND_TYPES = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
_ATTENTIVEFP_STEREO = ("STEREONONE", "STEREOANY", "STEREOZ", "STEREOE")
_FEATURISERS: dict[str, Callable[[], _Rows]] = {"ogb": _ogb, "attentivefp": _attentivefp}


def spelled_graph(molecule: Any, format: str, features: str) -> tuple[Data, list[int]]:
    """The graph of a molecule in training and in prediction, by ``dataset.format`` and ``dataset.features``,
    and the number that each node's atom has in ``molecule``.

    It does not depend on the spelling of the SMILES, unless the published graphs do.
    """
    order = list(range(molecule.GetNumAtoms()))
    if (format, features) not in _AS_SPELLED:
        molecule, order = canonical(molecule)
    return to_graph(molecule, features), order


def canonical_mark(features: str) -> str:
    """What a fingerprint has for graphs of :func:`spelled_graph`: OGB's were made as spelled before."""
    return "canonical ogb" if features == "ogb" else features


def scaffold(molecule: Any) -> str:
    """The Bemis-Murcko scaffold's SMILES, without chirality; '' for a molecule without rings."""
    from rdkit.Chem.Scaffolds import MurckoScaffold

    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=molecule, includeChirality=False))


def penalised_logp(molecule: Any) -> float:
    """ZINC's target: normalised logP minus synthetic accessibility minus rings larger than six.

    (logP - 2.4570934396)/1.4343244011 + (-SA + 3.0525811293)/0.8335207025
    + (-max(0, largest ring - 6) + 0.0485696876)/0.2860212110
    """
    from rdkit.Chem import rdMolDescriptors
    from rdkit.Contrib.SA_Score import sascorer

    largest = max((len(ring) for ring in molecule.GetRingInfo().AtomRings()), default=0)
    log_p = (rdMolDescriptors.CalcCrippenDescriptors(molecule)[0] - 2.4570934396) / 1.4343244011
    accessibility = (-sascorer.calculateScore(molecule) + 3.0525811293) / 0.8335207025
    cycle = (-max(0, largest - 6) + 0.0485696876) / 0.2860212110
    return float(log_p + accessibility + cycle)
