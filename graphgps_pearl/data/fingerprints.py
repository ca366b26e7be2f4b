"""Molecules as ECFP counts instead of graphs, for the baseline that needs no network."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch_geometric.data import Data

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import Items
from graphgps_pearl.errors import DataError


@dataclass(frozen=True)
class Fingerprints:
    """Turns items into graphs of one node: x [1, size] counts the atom neighbourhoods of a molecule (ECFP,
    hashed), y is the item's. The text names every setting, as it keys the cache."""

    size: int = 2048
    radius: int = 2
    version: int = 1

    def __call__(self, items: Items) -> Items:
        """The same rows and splits, with fingerprints for graphs."""
        from rdkit.Chem import rdFingerprintGenerator

        if items.smiles is None:
            raise DataError(
                f"{items.file}: has no SMILES, of which fingerprints are made; the baseline is for molecules "
                "from SMILES: Peptides from its CSV file, DrugOOD, dataset.format csv, the embedded ones"
            )
        smiles_of, graph_of = items.smiles, items.graph
        generator = rdFingerprintGenerator.GetMorganGenerator(radius=self.radius, fpSize=self.size)

        def graph(i: int) -> Data:
            counts = generator.GetCountFingerprintAsNumPy(molecules.parse(smiles_of(i)))
            x = torch.from_numpy(counts.astype(np.int32))[None]
            return Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long), y=graph_of(i).y)

        return replace(items, graph=graph)
