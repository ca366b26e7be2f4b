"""peptides-3d: 300 peptides of 3 to 6 residues built by RDKit, with 11 quantities of a 3D conformer as
targets.

The targets carry the names of Peptides-struct's and are the same kind of quantity, computed from one ETKDG
conformer with hydrogens (no force field), so a network that sees the bonds only has to guess shapes:

- ``Inertia_mass_[a-c]``: principal moments of inertia, masses as weights, divided by the total mass (A^2),
  sorted;
- ``Inertia_valence_[a-c]``: the same of the hydrogens alone;
- ``length_[a-c]``: extent along the three principal axes (A), sorted;
- ``Spherocity`` and ``Plane_best_fit``: RDKit's descriptors.

Standardised with the fixed constants below. Real geometry, and no benchmark: never compare with published
MAE.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import BadRowError, DatasetSpec, Facts, Items, Source
from graphgps_pearl.data.datasets.peptides import STRUCT_TARGETS
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.data.splits import random_split

_COUNT = 300
_SEED = 0
_FRACTIONS = (0.8, 0.1, 0.1)
_RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
# Mean and deviation of each target over the 300 peptides.
_MEAN = (27.612, 24.0937, 7.42202, 32.1448, 27.8799, 10.4019, 17.1654, 10.4434, 6.8875, 0.236209, 1.24838)
_STD = (9.2838, 9.15887, 2.77227, 10.0016, 9.95498, 3.19774, 3.44769, 2.16932, 1.74877, 0.0817813, 0.258303)


def sequences() -> list[str]:
    """The peptides as one-letter codes, all different, the same on every machine."""
    rng = np.random.default_rng(_SEED)
    found: dict[str, None] = {}
    while len(found) < _COUNT:
        length = int(rng.integers(3, 7))
        found["".join(_RESIDUES[i] for i in rng.integers(0, len(_RESIDUES), length))] = None
    return list(found)


def principal_moments(xyz: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Eigenvalues of sum_i w_i (|r_i|^2 I - r_i r_i^T) / sum_i w_i about the weighted centre, largest
    first."""
    share = weights / weights.sum()
    r = xyz - share @ xyz
    tensor = (share * (r**2).sum(axis=1)).sum() * np.eye(3) - (r * share[:, None]).T @ r
    return np.linalg.eigvalsh(tensor)[::-1]


def structure(sequence: str, seed: int) -> list[float]:
    """The 11 quantities of one conformer of a peptide."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDistGeom, rdMolDescriptors

    molecule = Chem.AddHs(Chem.MolFromSequence(sequence))
    settings = rdDistGeom.ETKDGv3()
    settings.randomSeed = seed + 1  # type: ignore[assignment]  # RDKit's stubs mistype the fields
    with rdBase.BlockLogs():
        failed = rdDistGeom.EmbedMolecule(molecule, settings) != 0
    if failed:
        raise BadRowError(f"RDKit finds no conformer of {sequence}")
    xyz = np.asarray(molecule.GetConformer().GetPositions())
    masses = np.array([atom.GetMass() for atom in molecule.GetAtoms()])
    hydrogens = np.array([atom.GetAtomicNum() == 1 for atom in molecule.GetAtoms()])
    centred = xyz - xyz.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    lengths = np.sort(np.ptp(centred @ axes.T, axis=0))[::-1]
    return [
        *principal_moments(xyz, masses).tolist(),
        *principal_moments(xyz[hydrogens], np.ones(int(hydrogens.sum()))).tolist(),
        *lengths.tolist(),
        rdMolDescriptors.CalcSpherocityIndex(molecule),
        rdMolDescriptors.CalcPBF(molecule),
    ]


@register_dataset("embedded", "peptides-3d")
class Peptides3D(Source):
    """OGB features of the heavy atoms, y [1, 11] standardised."""

    version = 2
    reads_files = False

    def spec(self) -> DatasetSpec:
        """The names and number of Peptides-struct's targets."""
        self.features("ogb")
        return DatasetSpec("peptides-3d", "regression", 9, 3, len(STRUCT_TARGETS), STRUCT_TARGETS)

    def facts(self) -> Facts:
        """The fixed split's sizes."""
        return Facts({"train": 240, "val": 30, "test": 30})

    def fingerprint(self) -> dict[str, Any]:
        """The construction's numbers and RDKit."""
        return {"settings": [_COUNT, _SEED, *_FRACTIONS, _MEAN, _STD], **molecules.versions()}

    def items(self) -> Items:
        """Peptides in the order in which they were drawn."""
        from rdkit import Chem

        peptides = sequences()
        mean, std = torch.tensor(_MEAN), torch.tensor(_STD)

        def graph(i: int) -> Data:
            data, _ = molecules.spelled_graph(Chem.MolFromSequence(peptides[i]), "embedded", "ogb")
            data.y = ((torch.tensor([structure(peptides[i], i)]) - mean) / std).float()
            return data

        parts = random_split(_COUNT, _FRACTIONS, _SEED)
        splits = {name: index.tolist() for name, index in parts.items()}

        def where(i: int) -> str:
            return f"peptide {i} ({peptides[i]})"

        return Items("peptides-3d", _COUNT, graph, where, splits, mean, std)
