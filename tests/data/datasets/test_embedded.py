import socket
from pathlib import Path

import numpy as np
import pytest
import torch
from rdkit import Chem

from graphgps_pearl import data
from graphgps_pearl.data import molecules
from graphgps_pearl.data.datasets import peptides_3d
from graphgps_pearl.data.datasets.nci_ood import nci_file
from graphgps_pearl.data.datasets.wehi_logp import wehi_file
from graphgps_pearl.errors import ConfigError


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_wehi_is_the_files_molecules_with_their_penalised_logp(make_cfg) -> None:
    bundle = data.load(make_cfg("embedded", "wehi-logp", subset=100))
    smiles = [line.split('"')[1] for line in wehi_file().read_text().splitlines()]
    assert len(smiles) == 10_000
    by_target = {round(float(graph.y), 4): graph for part in bundle.splits.values() for graph in part}
    hits = 0
    for text in smiles[:300]:
        molecule = molecules.parse(text)
        graph = by_target.get(round(molecules.penalised_logp(molecule), 4))
        hits += graph is not None and graph.num_nodes == molecule.GetNumAtoms()
    assert hits >= 1
    assert bundle.spec.target_names == ("penalised_logP",) and bundle.target_mean is None


@pytest.mark.slow
def test_all_of_wehi(make_cfg) -> None:
    bundle = data.load(make_cfg("embedded", "wehi-logp"))
    assert {name: len(part) for name, part in bundle.splits.items()} == {
        "train": 8000,
        "val": 1000,
        "test": 1000,
    }
    assert bundle.skipped == []


@pytest.mark.parametrize("name", ["nci-ood", "nci-ood-size"])
def test_nci_ood_shifts_its_domains(make_cfg, name: str) -> None:
    cfg = make_cfg("embedded", name, subset=400, features="ogb")
    cfg.dataset.task_type = "classification_binary"
    bundle = data.load(cfg)
    assert bundle.spec.select_split == "ood_val" and bundle.spec.dim_out == 1
    parts = bundle.splits
    total = sum(map(len, parts.values()))
    assert len(parts["train"]) / total == pytest.approx(0.36, abs=0.04)
    assert len(parts["ood_val"]) / total == pytest.approx(0.2, abs=0.06)
    for part in parts.values():
        assert 0.25 < part.targets().mean() < 0.75  # both classes everywhere
    if name.endswith("size"):
        assert parts["train"].num_nodes().min() > parts["ood_val"].num_nodes().max()
        assert parts["ood_val"].num_nodes().min() > parts["ood_test"].num_nodes().max()


def test_ncis_file_is_where_it_is_said_to_be() -> None:
    assert len(nci_file().read_text().splitlines()) == 4999


def test_peptides_3d_are_distinct_and_always_the_same() -> None:
    sequences = peptides_3d.sequences()
    assert len(set(sequences)) == 300 and sequences == peptides_3d.sequences()
    assert {len(sequence) for sequence in sequences} == {3, 4, 5, 6}


def test_principal_moments_of_a_rod_and_a_turned_box() -> None:
    rod = np.array([[0.0, 0, 0], [2.0, 0, 0]])
    assert np.allclose(peptides_3d.principal_moments(rod, np.array([1.0, 1.0])), [1, 1, 0])
    box = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], dtype=float)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turned = peptides_3d.principal_moments(box @ turn.T + 5, np.full(8, 2.0))
    assert np.allclose(turned, [(4 + 9) / 4, (1 + 9) / 4, (1 + 4) / 4])


def test_peptides_3d_have_the_chirality_that_predictions_give_them(make_cfg) -> None:
    """OGB's tag depends on the order of the atoms, and predictions make every SMILES canonical first."""
    items = peptides_3d.Peptides3D(make_cfg("embedded", "peptides-3d")).items()
    differ = 0
    for i, sequence in enumerate(peptides_3d.sequences()[:4]):
        as_built = Chem.MolFromSequence(sequence)
        spelled, _ = molecules.canonical(molecules.parse(Chem.MolToSmiles(as_built)))
        assert torch.equal(items.graph(i).x, molecules.to_graph(spelled, "ogb").x)
        tags = molecules.to_graph(as_built, "ogb").x[:, 1].bincount(minlength=3)
        differ += not torch.equal(tags, items.graph(i).x[:, 1].bincount(minlength=3))
    assert differ > 0


@pytest.mark.parametrize(("features", "same"), [("ogb", True), ("attentivefp", False)])
def test_features_that_depend_on_the_spelling_are_made_of_one(features: str, same: bool) -> None:
    """AttentiveFP's are not: other orders of atoms would be other data for those who have such runs."""
    one, other = (
        molecules.spelled_graph(molecules.parse(text), "embedded", features)[0]
        for text in ("N[C@@H](C)C(=O)O", "OC(=O)[C@H](C)N")
    )
    assert torch.equal(one.x, other.x) == same


def test_peptides_3d_have_sorted_standardised_structure(make_cfg) -> None:
    bundle = data.load(make_cfg("embedded", "peptides-3d", subset=10))
    assert bundle.spec.dim_out == 11 and bundle.spec.target_names[9] == "Spherocity"
    targets = torch.cat([part.targets() for part in bundle.splits.values()])
    assert targets.abs().max() < 6
    natural = targets * bundle.target_std + bundle.target_mean
    for first in (0, 3, 6):
        assert bool((natural[:, first : first + 3].diff(dim=1) <= 0).all())
    assert bool(((natural[:, 9] > 0) & (natural[:, 9] < 1)).all())
    graph = bundle.splits["train"][0]
    assert graph.x.shape[1] == 9 and Path(bundle.cache_file).is_file()


@pytest.mark.parametrize("settings", [{"path": "mine.csv"}, {"source": "download"}, {"source": "path"}])
@pytest.mark.parametrize(
    ("data_format", "name"), [("embedded", "wehi-logp"), ("PyG-GNNBenchmarkDataset", "CSL")]
)
def test_files_that_would_be_ignored_are_refused(make_cfg, data_format, name, settings) -> None:
    cfg = make_cfg(data_format, name, **settings)
    with pytest.raises(ConfigError, match=r"would be ignored, .* reads no files"):
        data.load(cfg)
