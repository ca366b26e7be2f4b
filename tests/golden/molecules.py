"""Small datasets in the public files' own formats, made of 18 molecules each, for the golden runs."""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from rdkit import Chem

SPLITS = {"train": 12, "val": 3, "test": 3}
DRUGS = (
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
    "CC(=O)Nc1ccc(O)cc1",
    "c1ccc2c(c1)cccc2O",
    "OCC1OC(O)C(O)C(O)C1O",
    "CCN(CC)CCNC(=O)c1ccc(N)cc1",
    "Clc1ccc(cc1)C(c1ccccc1)N1CCNCC1",
    "NC(=O)c1cnccn1",
    "CC1CCC(C(C)C)C(O)C1",
    "O=C1CCCCCN1",
    "FC(F)(F)c1cccc(c1)N1CCNCC1",
    "Cn1cccc1C(=O)c1ccc(s1)Br",
    "CC12CCC3C(CCC4=CC(=O)CCC34C)C1CCC2O",
    "C#CCOc1ccccc1",
    "CS(=O)(=O)NCc1ccncc1",
    "OC(c1ccccc1)C1CCCN1",
    "CCOC(=O)C1=CNC=CC1",
)
PEPTIDES = ("GAV", "SFG", "PLK", "AGDE", "WGA", "TNC", "GHIG", "MQA", "RGD", "YGG", "VPA", "CKG")
PEPTIDES += ("GGFL", "AAPV", "SGS", "EGK", "NFG", "HWG")
TARGETS = ("Inertia_mass_a", "Inertia_mass_b", "Inertia_mass_c", "Inertia_valence_a", "Inertia_valence_b")
TARGETS += ("Inertia_valence_c", "length_a", "length_b", "length_c", "Spherocity", "Plane_best_fit")


def write_datasets(folder: Path) -> None:
    """``ZINC/``, ``peptides-structural/`` and ``DrugOOD/`` below ``folder``, as ``dataset.dir`` has them."""
    _write_zinc(folder / "ZINC" / "raw")
    _write_peptides(folder / "peptides-structural")
    _write_drugood(folder / "DrugOOD")


def _parts(items: Sequence[str]) -> dict[str, Sequence[str]]:
    ends = np.cumsum(list(SPLITS.values()))
    return {split: items[end - SPLITS[split] : end] for split, end in zip(SPLITS, ends, strict=True)}


def _write_zinc(folder: Path) -> None:
    folder.mkdir(parents=True)
    for split, smiles in _parts(DRUGS).items():
        molecules = []
        for number, text in enumerate(smiles):
            molecule = Chem.MolFromSmiles(text)
            Chem.Kekulize(molecule)
            atoms = [atom.GetAtomicNum() % 28 for atom in molecule.GetAtoms()]
            bonds = torch.zeros(len(atoms), len(atoms), dtype=torch.long)
            for bond in molecule.GetBonds():
                ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
                bonds[ends] = bonds[ends[::-1]] = int(bond.GetBondTypeAsDouble())
            molecules.append(
                {
                    "num_atom": len(atoms),
                    "atom_type": torch.tensor(atoms),
                    "bond_type": bonds,
                    "logP_SA_cycle_normalized": torch.tensor([np.sin(number) + len(atoms) / 20]).float(),
                }
            )
        (folder / f"{split}.pickle").write_bytes(pickle.dumps(molecules))
        (folder / f"{split}.index").write_text(",".join(map(str, range(len(molecules)))) + "\n")


def _write_peptides(folder: Path) -> None:
    rows = [
        [number, Chem.MolToSmiles(Chem.MolFromSequence(sequence)), *np.sin(np.arange(1, 12) * (number + 1))]
        for number, sequence in enumerate(PEPTIDES)
    ]
    text = io.StringIO()
    csv.writer(text).writerows([["", "smiles", *TARGETS], *rows])
    (folder / "raw").mkdir(parents=True)
    (folder / "raw" / "peptide_structure_dataset.csv.gz").write_bytes(gzip.compress(text.getvalue().encode()))
    ends = np.cumsum(list(SPLITS.values()))
    split = {name: np.arange(end - SPLITS[name], end) for name, end in zip(SPLITS, ends, strict=True)}
    (folder / "splits_random_stratified_peptide_structure.pickle").write_bytes(pickle.dumps(split))


def _write_drugood(folder: Path) -> None:
    def row(smiles: str, number: int) -> dict[str, object]:
        label = int(len(smiles) % 2 == number % 2)
        return {
            "smiles": smiles,
            "reg_label": 4.4,
            "assay_id": 1,
            "cls_label": label,
            "domain_id": number % 3,
        }

    parts = _parts(DRUGS)
    splits = {"train": parts["train"], "ood_val": DRUGS[:6], "ood_test": DRUGS[6:12]}
    splits |= {"iid_val": DRUGS[3:9], "iid_test": DRUGS[9:15]}
    rows = {name: [row(s, i) for i, s in enumerate(smiles)] for name, smiles in splits.items()}
    folder.mkdir(parents=True)
    content = {"cfg": {}, "split": rows, "statistics": {}}
    (folder / "lbap_core_ic50_assay.json").write_text(json.dumps(content))
