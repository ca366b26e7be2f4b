"""From SMILES to graphs: what cannot be read has a reason, what is unusual is read."""

import math

import numpy as np
import pytest
import torch
from helpers.inference import ENCODERS, spellings
from rdkit import Chem
from torch_geometric.data import Batch, Data

import graphgps_pearl
from graphgps_pearl import config
from graphgps_pearl.data import molecules
from graphgps_pearl.data.datasets.nci_ood import NciOOD
from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.featurise import featuriser
from graphgps_pearl.inference.loading import load, untrained


def test_a_bad_smiles_has_a_reason_and_disturbs_nobody(trained):
    model = load(trained("Atom+BPEARL"), "cpu")
    result = model.predict(["CCO", "not a molecule", "", "C(", "c1ccccc1"])
    assert sorted(result.errors) == [1, 2, 3]
    assert "does not parse" in result.errors[3]
    assert np.isnan(result.values[1:4]).all()
    np.testing.assert_allclose(result.values[[0, 4]], model.predict(["CCO", "c1ccccc1"]).values, rtol=1e-5)
    assert "does not parse" in str(result)
    assert np.isnan(model.predict(["C("]).values).all()
    assert len(model.predict([])) == 0
    for wanted in (model.predict, model.encode):
        with pytest.raises(UserError, match=rf"{wanted.__name__} wants a list of SMILES"):
            wanted("CCO")


@pytest.mark.parametrize("text", ("C", "[Na+].[Cl-]", "*CC", "[2H]O[2H]", "C" * 300))
def test_unusual_molecules_get_a_number(trained, text):
    for encoder in ENCODERS:
        assert np.isfinite(load(trained(encoder), "cpu").predict([text]).values).all()


def test_a_molecule_too_large_for_the_encoding_disturbs_nobody(monkeypatch):
    monkeypatch.setattr("graphgps_pearl.pearl.hooks.MAX_PAIRS", 500_000)
    model, smiles = load("wehi-logp", "cpu"), ["CCO", "C" * 800, "CC"]
    predicted, encoded = model.predict(smiles), model.encode(smiles)
    for found in (predicted, encoded):
        assert list(found.errors) == [1] and "800 nodes" in found.errors[1]
    assert np.isfinite(predicted.values[:, 0]).tolist() == [True, False, True]
    assert [len(part) for part in encoded.arrays["BPEARL"]] == [3, 0, 2]


def test_a_graph_too_large_for_the_encoding_is_named(monkeypatch):
    monkeypatch.setattr("graphgps_pearl.pearl.hooks.MAX_PAIRS", 500_000)
    model = load("zinc-bpearl", "cpu")
    graphs = []
    for n in (3, 800, 5):
        edges = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
        edge_index = torch.cat([edges, edges.flip(0)], dim=1)
        x, edge_attr = torch.zeros(n, 1).long(), torch.ones(edge_index.size(1)).long()
        graphs.append(Data(x=x, edge_index=edge_index, edge_attr=edge_attr))
    with pytest.raises(DataError, match=r"graph 1: .*800 nodes"):
        model.predict_graphs(graphs)
    assert len(model.predict_graphs([graphs[0], graphs[2]])) == 2


def test_models_of_other_graphs_say_why_they_cannot_read_smiles():
    configs = graphgps_pearl.__file__.replace("graphgps_pearl/__init__.py", "configs")
    model = untrained(f"{configs}/zinc-none.yaml", device="cpu")
    with pytest.raises(UserError, match="28 atom types"):
        model.predict(["CCO"])


PEPTIDES = [Chem.MolToSmiles(Chem.MolFromSequence(s)) for s in ("A", "ACDE", "WYV", "IKT", "PGM", "FLRHS")]


@pytest.mark.parametrize("model", ["wehi-logp", "Atom+RPEARL"])
def test_chiral_molecules_have_one_prediction_in_any_spelling(trained, model):
    """OGB's chirality tag depends on the order of the atoms; predictions of peptides moved by up to 0.22."""
    loaded = load(model if model == "wehi-logp" else trained(model), "cpu")
    first = loaded.predict(PEPTIDES).values
    for seed in range(5):
        np.testing.assert_array_equal(loaded.predict(spellings(PEPTIDES, seed)).values, first)
    mirrored = [text.replace("@@", "!").replace("@", "@@").replace("!", "@") for text in PEPTIDES]
    assert (loaded.predict(mirrored).values != first).any()  # the label still says something


@pytest.mark.parametrize("features", ["attentivefp", "ogb"])
def test_a_prediction_is_made_from_the_graph_of_the_training(features):
    """AttentiveFP counts the hydrogens of C and not those of [CH], which is C in a canonical SMILES."""
    cfg = config.parse(
        f"dataset: {{format: embedded, name: nci-ood-size, features: {features}, task: graph, "
        "task_type: classification_binary, node_encoder: true, node_encoder_name: LinearNode}\n"
        "model: {loss_fun: cross_entropy}",
        name="nci",
    )
    source = NciOOD(cfg)
    spec, items = source.spec(), source.items()
    graph_of = featuriser(
        cfg,
        ModelFacts("nci", spec.name, spec.task_type, spec.dim_in, spec.edge_dim, 1, spec.target_names, ()),
    )
    spelled = [i for i in range(60) if "[CH]" in items.smiles(i)]
    assert spelled
    for i in spelled:
        graph, trained = graph_of(items.smiles(i))[0], items.graph(i)
        assert torch.equal(graph.x, trained.x) and torch.equal(graph.edge_attr, trained.edge_attr)


EDGES = torch.tensor([[0, 1], [1, 0]])
ATOMS, BONDS = torch.zeros(2, 1, dtype=torch.long), torch.ones(2, dtype=torch.long)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (Data(x=ATOMS[:0], edge_index=EDGES[:, :0], edge_attr=BONDS[:0]), "has no nodes"),
        (Data(x=ATOMS, edge_index=EDGES.float(), edge_attr=BONDS), "edge_index is float32"),
        (Data(x=ATOMS, edge_index=EDGES[:1], edge_attr=BONDS), r"edge_index is .*\[1, 2\]"),
        ("CCO", "is a str"),
    ],
)
def test_graphs_that_are_none_are_named(graph, said):
    model, good = load("zinc-bpearl", "cpu"), Data(x=ATOMS, edge_index=EDGES, edge_attr=BONDS)
    with pytest.raises(DataError, match=f"^graph 1: {said}"):
        model.predict_graphs([good, graph])


@pytest.mark.parametrize(
    ("attribute", "shift", "said"),
    [
        ("x", 500, r"x has 505 in column 0, where OGB's atoms have 0 to 118"),
        ("x", -9, r"x has -4 in column 0, where OGB's atoms have 0 to 118"),
        ("edge_attr", 50, r"edge_attr has 50 in column 0, where OGB's bonds have 0 to 4"),
        ("x", 0.5, "Atom reads OGB's integer features"),
    ],
)
def test_features_that_ogb_does_not_have_are_named(attribute, shift, said):
    model, graph = load("wehi-logp", "cpu"), molecules.to_graph(molecules.parse("COC"), "ogb")
    other = graph.clone()
    other[attribute] = other[attribute] + shift
    with pytest.raises(DataError, match=f"^graph 1: .*{said}"):
        model.predict_graphs([graph, other])


def test_what_is_no_text_is_no_smiles():
    """A column of pandas has NaN or None where there is nothing."""
    found = load("wehi-logp", "cpu").predict(["CCO", None, float("nan")])
    assert set(found.errors) == {1, 2} and "not text" in found.errors[1]
    assert math.isfinite(found.values[0, 0])


def test_a_column_of_edge_features_may_be_a_vector_in_some_graphs():
    model = load("zinc-bpearl", "cpu")
    graphs = [Data(x=ATOMS, edge_index=EDGES, edge_attr=bonds) for bonds in (BONDS, BONDS.view(-1, 1))]
    first, second = model.predict_graphs(graphs)
    np.testing.assert_array_equal(first, second)


def test_one_graph_is_no_list():
    model, good = load("zinc-bpearl", "cpu"), Data(x=ATOMS, edge_index=EDGES, edge_attr=BONDS)
    for graphs in (good, Batch.from_data_list([good, good])):
        with pytest.raises(UserError, match=r"list of graphs.*predict_graphs\(\[data\]\).*to_data_list"):
            model.predict_graphs(graphs)


def test_parts_of_a_large_graph_keep_their_nodes_numbers():
    """Then a node has the same samples in every part, as in training, whatever its position in the part."""
    words = ("dataset.subgraph_hops", "2", "posenc_RPEARL.num_samples", "4")
    model = untrained("cora-rpearl", words, "cpu")
    x, edges = torch.randn(5, model.facts.dim_in), torch.tensor([[0, 1, 2, 3, 1], [1, 2, 3, 4, 0]])
    whole = model.predict_graphs([Data(x=x, edge_index=edges)])[0]
    n_id = torch.tensor([3, 0, 4, 1, 2])
    part = Data(x=x[n_id], edge_index=torch.argsort(n_id)[edges], n_id=n_id)
    with_and_without = [part, Data(x=x, edge_index=edges)]
    found = model.predict_graphs(with_and_without)
    np.testing.assert_allclose(found[0], whole[n_id], rtol=1e-5)
    np.testing.assert_allclose(found[1], whole, rtol=1e-5)
    with pytest.raises(DataError, match=r"^graph 0: n_id is float32 \[5\], not integers \[5\]"):
        model.predict_graphs([Data(x=x, edge_index=edges, n_id=n_id.float())])
