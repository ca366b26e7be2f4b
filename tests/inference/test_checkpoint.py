"""Which weights a run's model has, and what is said of them."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from helpers.inference import damage

from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.loading import load
from graphgps_pearl.runs.folder import RunFolder


def test_damaged_or_missing_weights_are_never_replaced_in_silence(run, caplog):
    shutil.copy(run / "best.ckpt", run / "previous-best.ckpt")
    expected = load(run, "cpu")
    assert not caplog.records
    for spoil in (damage, Path.unlink):
        spoil(run / "best.ckpt")
        found = load(run, "cpu")
        assert len(caplog.records) == 1 and "best.ckpt" in caplog.text and "previous-best.ckpt" in caplog.text
        assert "best but one" in write_card(found.cfg, found.facts)
        for mine, other in zip(found.network.parameters(), expected.network.parameters(), strict=True):
            assert torch.equal(mine, other)
        caplog.clear()
    damage(run / "previous-best.ckpt")
    with pytest.raises(DataError, match=r"best\.ckpt.*last\.ckpt"):
        load(run, "cpu")


def with_data(run, **changed):
    """The model of a run whose data.json says something else."""
    folder = RunFolder(run)
    known = json.loads(folder.read(folder.data)) | changed
    folder.write(folder.data, json.dumps(known))
    return load(run, "cpu")


def test_names_of_columns_may_have_characters_that_are_not_printed(run):
    """Spreadsheets put line breaks and no-break spaces into headers; training takes such columns."""
    model = with_data(run, target_names=["log\u00a0S\n[mol/l]", "rings\x1b"])
    assert model.predict(["CCO"]).columns == ("pred_log S [mol/l]", "pred_rings\\x1b")


def test_units_are_those_of_the_predictions(run):
    """LRGB's public table of Peptides-struct has standardised targets and no statistics to take them back."""
    names = ["Inertia_mass_a", "length_a"]
    statistics = {"target_mean": [1.0, 2.0], "target_std": [1.0, 2.0]}
    with_units = with_data(run, name="Peptides-struct", target_names=names, **statistics)
    assert with_units.facts.columns == ("pred_Inertia_mass_a [Å²]", "pred_length_a [Å]")
    without = with_data(run, target_mean=None, target_std=None)
    assert without.facts.columns == ("pred_Inertia_mass_a", "pred_length_a")


@pytest.mark.parametrize("word", [".", "best.ckpt"])
def test_a_model_is_named_after_its_config_also_from_its_own_folder(run, monkeypatch, word):
    monkeypatch.chdir(run)
    assert load(word, "cpu").facts.name == "atom"
