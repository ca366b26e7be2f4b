import csv
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from ogb.utils import smiles2graph

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import BadRowError
from graphgps_pearl.data.datasets.wehi_logp import wehi_file

ODD = [
    "C",
    "[Na+].[Cl-]",
    "[H][H]",
    "F/C=C/F",
    "F/C=C\\F",
    "N[C@@H](C)C(=O)O",
    "C[N+](C)(C)C",
    "[CH3]",
    "F[S](F)(F)(F)(F)F",
    "[Fe+2]",
    "c1ccccc1-c1ccncc1",
    "[Cu-5]",
    "*CC",
]


def test_ogb_features_are_ogbs() -> None:
    with wehi_file().open(newline="") as file:
        smiles = [row[0] for row in csv.reader(file)][:200]
    for text in [*smiles, *ODD]:
        ours, theirs = molecules.to_graph(molecules.parse(text), "ogb"), smiles2graph(text)
        assert np.array_equal(ours.x.numpy(), theirs["node_feat"]), text
        assert np.array_equal(ours.edge_index.numpy(), theirs["edge_index"]), text
        assert np.array_equal(ours.edge_attr.numpy(), theirs["edge_feat"]), text


@pytest.mark.parametrize("text", ["C C", "CCO ethanol", "CC\tO", "CCO\u00a0C", "C |", "CCO |x| ethanol"])
def test_white_space_within_a_smiles_is_refused(text: str) -> None:
    """RDKit reads ``C C`` as methane by the name of C, without a word."""
    with pytest.raises(BadRowError, match="white space"):
        molecules.parse(text)


def test_white_space_around_a_smiles_and_before_its_extensions_is_not() -> None:
    assert molecules.parse(" CCO\t").GetNumAtoms() == 3
    assert molecules.parse("CC |^1:1|").GetAtomWithIdx(1).GetNumRadicalElectrons() == 1


def test_attentivefp_features_by_hand() -> None:
    graph = molecules.to_graph(molecules.parse("N[C@@H](C)C(=O)[O-]"), "attentivefp")
    assert graph.x.shape == (6, 39) and graph.x.dtype == torch.float

    def places(row: int) -> list[int]:
        return graph.x[row].nonzero().flatten().tolist()

    # element, 16 + degree, hybridisation (24 SP .. 26 SP3), 31 + implicit hydrogens
    assert places(0) == [2, 17, 26, 33]  # N: degree 1, SP3, two hydrogens
    # The chiral carbon's hydrogen is written, so none is implicit; chirality possible, S (L-alanine).
    assert places(1) == [1, 19, 26, 31, 36, 38]
    assert places(2) == [1, 17, 26, 34]
    assert places(4) == [3, 17, 25, 31]
    assert graph.x[5, 22] == -1 and graph.x[5, 3] == 1  # the charge is a number, not a place
    bond = {
        tuple(pair): row for pair, row in zip(graph.edge_index.t().tolist(), graph.edge_attr, strict=True)
    }
    assert bond[3, 4].nonzero().flatten().tolist() == [1, 4, 6]  # C=O: double, conjugated, no stereo
    assert torch.equal(bond[3, 4], bond[4, 3])


def test_attentivefp_stereo_aromatic_and_other_elements() -> None:
    graph = molecules.to_graph(molecules.parse("F/C=C/c1cccc([Sn])c1"), "attentivefp")
    double = graph.edge_attr[graph.edge_attr[:, 1] == 1][0]
    assert double.nonzero().flatten().tolist() == [1, 4, 9]  # E, conjugated with the ring
    aromatic = graph.edge_attr[graph.edge_attr[:, 3] == 1][0]
    assert aromatic[5] == 1  # in ring
    tin = graph.x[graph.x[:, 15] == 1]
    assert len(tin) == 1 and tin[0, 23] > 0  # any other element, with radical electrons
    carbon = graph.x[(graph.x[:, 1] == 1) & (graph.x[:, 30] == 1)]
    assert len(carbon) == 6
    assert bool((graph.x[:, 16:22].sum(1) == 1).all()) and bool((graph.x[:, 31:36].sum(1) == 1).all())


@pytest.mark.parametrize(
    ("smiles", "features", "message"),
    [
        ("", "ogb", "the SMILES is empty"),
        ("C1CC", "ogb", "'C1CC' does not parse"),
        ("not a molecule" * 9, "ogb", r"\.\.\.' does not parse"),
        ("FS(F)(F)(F)(F)F", "attentivefp", r"atom 1 \(S\) has degree 6, above 5"),
        ("[NH3]->[Fe]", "attentivefp", "bond 0 is DATIVE, not single"),
    ],
)
def test_what_cannot_be_a_graph_says_why(smiles: str, features: str, message: str) -> None:
    with pytest.raises(BadRowError, match=message):
        molecules.to_graph(molecules.parse(smiles), features)


def test_a_single_atom_is_a_graph_without_edges() -> None:
    for features, (dim_in, edge_dim) in molecules.FEATURES.items():
        graph = molecules.to_graph(molecules.parse("C"), features)
        assert graph.x.shape == (1, dim_in)
        assert graph.edge_index.shape == (2, 0) and graph.edge_attr.shape == (0, edge_dim)


def test_scaffolds_ignore_chirality_and_side_chains() -> None:
    left, right = (molecules.parse(s) for s in ("C[C@H](N)c1ccccc1", "OCCc1ccccc1"))
    assert molecules.scaffold(left) == molecules.scaffold(right) == "c1ccccc1"
    assert molecules.scaffold(molecules.parse("CCO")) == ""


def test_penalised_logp_of_benzene() -> None:
    from rdkit.Chem import Crippen
    from rdkit.Contrib.SA_Score import sascorer

    benzene = molecules.parse("c1ccccc1")
    expected = (Crippen.MolLogP(benzene) - 2.4570934396) / 1.4343244011
    expected += (3.0525811293 - sascorer.calculateScore(benzene)) / 0.8335207025 + 0.0485696876 / 0.2860212110
    assert math.isclose(molecules.penalised_logp(benzene), expected, rel_tol=1e-9)


def test_a_canonical_molecule_is_one_for_all_spellings() -> None:
    from rdkit import Chem

    text = "N[C@@H](C)C(=O)N[C@@H](CC(=O)O)C(=O)O"
    molecule = molecules.parse(text)
    first, order = molecules.canonical(molecule)
    wanted = molecules.to_graph(first, "ogb")
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    assert [symbols[i] for i in order] == [atom.GetSymbol() for atom in first.GetAtoms()]
    tags = set()
    for seed in range(20):
        other = Chem.MolToRandomSmilesVect(molecule, 1, randomSeed=seed)[0]
        as_spelled = molecules.to_graph(molecules.parse(other), "ogb")
        tags.add(tuple(sorted(as_spelled.x[:, 1].tolist())))
        graph = molecules.to_graph(molecules.canonical(molecules.parse(other))[0], "ogb")
        for key in ("x", "edge_index", "edge_attr"):
            assert torch.equal(graph[key], wanted[key]), other
    assert len(tags) > 1  # as it is spelled, the chirality tags differ


def test_importing_ogb_asks_no_network() -> None:
    script = (
        "import threading; from graphgps_pearl.ogb_features import ogb_features; ogb_features();"
        "import ogb.version; print(ogb.version.check_outdated, threading.active_count())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "1"]
