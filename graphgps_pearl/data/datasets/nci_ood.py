"""nci-ood: the NCI molecules that the RDKit wheel carries, split by domains as DrugOOD splits its assays.

4,999 molecules. Today's RDKit does not parse 8 of them and 61 have metals that the AttentiveFP features do
not cover; they are left out and listed. The label is drug-likeness: RDKit's QED > 0.55. The domain is the
Bemis-Murcko scaffold (``nci-ood``, ``nci-ood-scaffold``; common scaffolds for training, rare ones for the
tests) or the number of atoms (``nci-ood-size``; large molecules for training, small ones for the tests).
Real chemistry for trying out what shifts do, and no benchmark: never compare with DrugOOD's figures.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import BadRowError, DatasetSpec, Items, Source, class_target
from graphgps_pearl.data.cache import checksum
from graphgps_pearl.data.datasets.drugood import SPLITS
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.data.splits import domain_split

_THRESHOLD = 0.55
_SEED = 0


def nci_file() -> Path:
    """The file of SMILES inside the installed RDKit."""
    from rdkit import RDConfig

    return Path(RDConfig.RDDataDir) / "NCI" / "first_5K.smi"


@register_dataset("embedded", "nci-ood", "nci-ood-scaffold", "nci-ood-size")
class NciOOD(Source):
    """Two classes, five splits, AttentiveFP features as for DrugOOD (or OGB's)."""

    reads_files = False

    bad_rows_are_known = True

    def spec(self) -> DatasetSpec:
        """As DrugOOD's."""
        dim_in, edge_dim = molecules.feature_dims(self.features("attentivefp", "ogb"))
        name = self.cfg.dataset.name
        return self.two_class_spec(
            DatasetSpec(name, "", dim_in, edge_dim, None, ("drug_like",), SPLITS, "ood_val")
        )

    def fingerprint(self) -> dict[str, Any]:
        """The file in the wheel, the settings, and RDKit."""
        features, form = self.features("attentivefp", "ogb"), self.spec().task_type
        return {
            "file": checksum(nci_file()),
            "settings": [_THRESHOLD, _SEED, molecules.canonical_mark(features), form],
            **molecules.versions(),
        }

    def items(self) -> Items:
        """Molecules in the file's order; those that do not parse belong to no split."""
        from rdkit.Chem import QED

        lines = [line.split()[0] for line in nci_file().read_text().splitlines() if line.strip()]
        by_size = self.cfg.dataset.name.endswith("size")
        domains: dict[int, Any] = {}
        for i, smiles in enumerate(lines):
            try:
                molecule = molecules.parse(smiles)
            except BadRowError:
                continue  # reported when its graph is made
            domains[i] = molecule.GetNumAtoms() if by_size else molecules.scaffold(molecule)
        capacity = Counter(domains.values())
        ranks = {domain: -domain if by_size else -count for domain, count in capacity.items()}
        parts = domain_split(list(domains.values()), ranks, _SEED)
        usable = list(domains)
        features, form = self.features("attentivefp", "ogb"), self.spec().task_type

        def graph(i: int) -> Data:
            molecule = molecules.parse(lines[i])
            data, _ = molecules.spelled_graph(molecule, "embedded", features)
            data.y = class_target(int(QED.qed(molecule) > _THRESHOLD), form)
            return data

        splits = {name: [usable[k] for k in index] for name, index in parts.items()}
        return Items(
            str(nci_file()), len(lines), graph, lambda i: f"line {i + 1}", splits, smiles=lines.__getitem__
        )
