"""Predictions are those of the training evaluation, and depend on the molecule alone."""

import csv
import json
import shutil

import numpy as np
import pytest
import torch
from helpers.inference import ENCODERS, spellings

from graphgps_pearl.inference.folder import write_model
from graphgps_pearl.inference.loading import load
from graphgps_pearl.runs.folder import RunFolder

GRAPHGYM = (
    *("model.type", "gnn", "gnn.layer_type", "generaledgeconv"),
    *("gnn.head", "graph", "dataset.edge_dim", "32"),
)


@pytest.mark.parametrize(
    "setting",
    [
        *((encoder,) for encoder in ENCODERS),
        ("Atom+BPEARL", "train.precision", "64"),
        ("Atom+BPEARL", *GRAPHGYM),
    ],
    ids="_".join,
)
def test_predictions_are_those_of_the_training_evaluation(trained, table, setting, tmp_path):
    run = trained(*setting)
    result = json.loads((run / "result.json").read_text())["best"]
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for split in ("val", "test"):
        chosen = [row for row in rows if row["split"] == split]
        wanted = np.array([[float(row["atoms"]), float(row["rings"])] for row in chosen])
        predicted = load(run, "cpu").predict([row["smiles"] for row in chosen], tables=1)
        assert np.abs(predicted.values - wanted).mean() == pytest.approx(result[f"{split}_mae"], rel=1e-5)
    write_model(load(run, "cpu"), tmp_path / "exported")
    again = load(tmp_path / "exported", "cpu").predict([row["smiles"] for row in chosen], tables=1)
    assert np.array_equal(again.values, predicted.values)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_neither_batch_size_nor_row_order_matters(trained, smiles, encoder):
    model, smiles = load(trained(encoder), "cpu"), smiles[:40]
    together = model.predict(smiles).values
    assert np.isfinite(together).all()
    np.testing.assert_allclose(model.predict(smiles, batch_size=1).values, together, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.predict(smiles[::-1]).values[::-1], together, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("encoder", ("Atom+BPEARL", "Atom+RWSE+BPEARL"))
def test_the_spelling_of_a_smiles_does_not_matter_without_samples(trained, smiles, encoder):
    model = load(trained(encoder), "cpu")
    assert not model.draws_samples
    assert model.predict(["CCO"]).spread is None
    first, second = model.predict(["CCO", *smiles]), model.predict(["OCC", *spellings(smiles)])
    np.testing.assert_allclose(second.values, first.values, rtol=1e-4, atol=1e-5)


def test_the_spread_over_tables_says_what_one_table_is_worth(trained, smiles):
    model = load(trained("Atom+RPEARL"), "cpu")
    assert model.draws_samples
    result = model.predict(smiles, tables=16)
    assert result.spread is not None
    assert result.spread.shape == result.values.shape
    assert (result.spread > 0).all()
    # Another table's prediction is about that far away.
    gap = np.abs(model.predict(smiles, tables=1).values - result.values)
    assert 0.3 < gap.mean() / result.spread.mean() < 2
    assert model.predict(smiles, tables=1).spread is None


def test_a_number_that_is_not_finite_is_no_prediction(trained):
    model = load(trained("Atom+BPEARL"), "cpu")
    with torch.no_grad():
        next(iter(model.network.parameters()))[6 - 1] = float("nan")  # carbon's row of the atomic numbers
    result = model.predict(["CCO", "[Na+].[Cl-]"])
    assert list(result.errors) == [0]
    assert "not finite" in result.errors[0]
    assert np.isfinite(result.values[1]).all()


def test_a_model_folder_predicts_the_same_without_the_data(trained, smiles, tmp_path):
    run = trained("Atom+RPEARL")
    model = load(run, "cpu")
    write_model(model, tmp_path / "model")
    # The config that travels names no file of this machine.
    assert str(run.parents[2]) not in "".join(
        (tmp_path / "model" / name).read_text() for name in ("config.yaml", "model.json", "README.md")
    )
    again = load(tmp_path / "model", "cpu")
    assert again.facts == model.facts
    np.testing.assert_array_equal(again.predict(smiles).values, model.predict(smiles).values)
    again = load(run / "best.ckpt", "cpu")
    np.testing.assert_array_equal(again.predict(smiles).values, model.predict(smiles).values)


def test_standardised_targets_come_back_in_their_units(trained, tmp_path):
    run = tmp_path / "results" / "run" / "0"
    shutil.copytree(trained("Atom+BPEARL"), run)
    facts = json.loads((run / "data.json").read_text())
    own = load(run, "cpu").predict(["CCO"]).values  # trained on targets as they are
    facts |= {"target_mean": [3.0, -1.0], "target_std": [2.0, 0.5], "name": "peptides-3d"}
    facts["target_names"] = ["length_a", "Spherocity"]
    RunFolder(run).write(run / "data.json", json.dumps(facts))
    scaled = load(run, "cpu").predict(["CCO"])
    np.testing.assert_allclose(scaled.values, own * [2.0, 0.5] + [3.0, -1.0], rtol=1e-6)
    assert scaled.columns == ("pred_length_a [Å]", "pred_Spherocity")


@pytest.mark.parametrize("task_type", ("classification_multilabel", "classification"))
def test_classes_come_as_probabilities(trained, tmp_path, task_type):
    run = tmp_path / "results" / "run" / "0"
    shutil.copytree(trained("Atom+BPEARL"), run)
    facts = json.loads((run / "data.json").read_text()) | {"task_type": task_type}
    RunFolder(run).write(run / "data.json", json.dumps(facts))
    result = load(run, "cpu").predict(["CCO", "c1ccccc1"])
    assert ((result.values > 0) & (result.values < 1)).all()
    if task_type == "classification":
        np.testing.assert_allclose(result.values.sum(axis=1), 1)
        assert result.columns == ("prob_atoms=0", "prob_atoms=1")
    else:
        assert result.columns == ("prob_atoms", "prob_rings")


def test_a_run_without_its_facts_reads_the_data_again(trained, tmp_path, caplog):
    run = tmp_path / "results" / "run" / "0"
    shutil.copytree(trained("Atom+BPEARL"), run)
    expected = load(run, "cpu").predict(["CCO"]).values
    (run / "data.json").unlink()
    with caplog.at_level("INFO", logger="graphgps_pearl"):
        np.testing.assert_array_equal(load(run, "cpu").predict(["CCO"]).values, expected)
    assert "reading the data" in caplog.text


def test_encodings_follow_the_atoms(trained):
    model = load(trained("Atom+RWSE+BPEARL"), "cpu")
    found = model.encode(["CCO", "OCC", "bad", "c1ccccc1"])
    assert set(found.arrays) == {"RWSE", "BPEARL"}
    assert list(found.errors) == [2]
    for parts in found.arrays.values():
        assert [part.shape for part in parts] == [(3, 8), (3, 8), (0, 8), (6, 8)]
        np.testing.assert_allclose(parts[0], parts[1][::-1], atol=1e-5)
        np.testing.assert_allclose(parts[3], np.repeat(parts[3][:1], 6, axis=0), atol=1e-5)


def test_encodings_come_in_the_order_of_the_smiles(trained):
    model = load(trained("Atom+BPEARL"), "cpu")
    forward, backward = (model.encode([text]).arrays["BPEARL"][0] for text in ("CCO", "OCC"))
    np.testing.assert_allclose(forward, backward[::-1], rtol=1e-5)
    assert not np.allclose(forward[0], forward[1])
