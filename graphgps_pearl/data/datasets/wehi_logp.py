"""wehi-logp: the 10,000 drug-like molecules that the RDKit wheel carries, with ZINC's kind of target.

Real chemistry that needs no download, and no benchmark: never compare its errors with published ZINC figures.
Features are OGB's, the target is penalised logP (not standardised), the split 8000/1000/1000 is random and
fixed.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import DatasetSpec, Facts, Items, Source, as_target
from graphgps_pearl.data.cache import checksum
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.data.splits import random_split

_SPLIT_SEED = 0
_FRACTIONS = (0.8, 0.1, 0.1)


def wehi_file() -> Path:
    """The CSV (SMILES, identifier) inside the installed RDKit."""
    from rdkit import RDConfig

    return Path(RDConfig.RDDataDir) / "Pains" / "test_data" / "wehi_mols.csv"


@register_dataset("embedded", "wehi-logp")
class WehiLogP(Source):
    """Penalised logP of the molecules in ``Data/Pains/test_data/wehi_mols.csv``."""

    reads_files = False

    def spec(self) -> DatasetSpec:
        """One regression target on OGB features."""
        self.features("ogb")
        return DatasetSpec("wehi-logp", "regression", 9, 3, 1, ("penalised_logP",))

    def fingerprint(self) -> dict[str, Any]:
        """The file in the wheel and the RDKit that computes features and target."""
        return {"file": checksum(wehi_file()), "split": [_SPLIT_SEED, *_FRACTIONS], **molecules.versions()}

    def facts(self) -> Facts:
        """The fixed split's sizes."""
        return Facts({"train": 8000, "val": 1000, "test": 1000})

    def items(self) -> Items:
        """SMILES in the file's order."""
        file = wehi_file()
        with file.open(newline="") as lines:
            smiles = [row[0] for row in csv.reader(lines) if row]

        def graph(i: int) -> Data:
            molecule = molecules.parse(smiles[i])
            data = molecules.to_graph(molecule, "ogb")  # without chirality, any order of atoms will do
            data.y = as_target([molecules.penalised_logp(molecule)])
            return data

        splits = {
            name: index.tolist() for name, index in random_split(len(smiles), _FRACTIONS, _SPLIT_SEED).items()
        }
        return Items(
            str(file), len(smiles), graph, lambda i: f"line {i + 1}", splits, smiles=smiles.__getitem__
        )
