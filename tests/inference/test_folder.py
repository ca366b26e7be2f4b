"""Model folders: nothing is used that is not what was exported, and hostile ones end in one line."""

import json
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest
from attacks import folders as hostile

from graphgps_pearl import config
from graphgps_pearl.errors import UserError
from graphgps_pearl.inference import folder as folders
from graphgps_pearl.inference.loading import load
from graphgps_pearl.inference.shipped import SHIPPED

SHIPPED_MODEL = SHIPPED / "wehi-logp"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED_MODEL, tmp_path / "model"))


@pytest.mark.parametrize("name", hostile.CASES)
def test_hostile_folders_are_refused_in_one_line(model, name):
    """All checksums are right: they tell damage, and whoever makes a folder makes them too."""
    hostile.CASES[name](model)
    began = time.process_time()
    if name in hostile.HARMLESS:
        folders.read_model(model)
    else:
        with pytest.raises(UserError) as caught:
            folders.read_model(model)
        assert str(caught.value).isprintable()
    assert time.process_time() - began < 20


@pytest.mark.parametrize("name", ["model.safetensors", "config.yaml", "model.json"])
def test_a_wrong_bit_is_never_used(model, name):
    whole, rng = (model / name).read_bytes(), random.Random(0)
    description = json.loads((model / "model.json").read_text())
    for _ in range(20):
        content, place = bytearray(whole), rng.randrange(len(whole))
        content[place] ^= 1 << rng.randrange(8)
        (model / name).write_bytes(content)
        try:
            folders.read_facts(model)
        except UserError as error:
            assert name in str(error)
        else:  # only the layout of the JSON
            assert name == "model.json" and json.loads(content) == description


def test_a_seed_is_no_size(trained):
    run = trained("Atom+RPEARL", "posenc_RPEARL.eval_seed", "2000000000", "optim.max_epoch", "1")
    assert load(run, "cpu").predict(["CCO"]).errors == {}


def test_no_path_of_the_training_machine_is_in_a_model_folder():
    places = ["out_dir", "/home/me/results", "dataset.dir", "/home/me/data", "dataset.path", "/home/me/a.csv"]
    cfg = config.load("quickstart", [*places, "pretrained.dir", "/home/me/results/zinc-bpearl/0"])
    exported = folders.without_places(cfg)
    assert "/home" not in config.dump(exported)
    assert (exported.dataset.path, exported.pretrained.dir) == ("a.csv", "zinc-bpearl/0")


def test_an_edited_card_is_mentioned_and_no_more(model, caplog):
    (model / "README.md").write_text("My own words.\n")
    assert folders.read_facts(model).name == "wehi-logp"
    assert "README.md is not the one that was exported" in caplog.text


def test_the_shipped_model_is_the_one_that_was_exported():
    """After a change to its config.yaml: folders.write_description(facts, folder)."""
    content = json.loads((SHIPPED_MODEL / "model.json").read_text())
    assert set(content["files"]) == {"model.safetensors", "config.yaml", "README.md"}
    loaded = folders.read_model(SHIPPED_MODEL)
    assert loaded.facts.chosen == "chosen by validation"
    assert np.isfinite(loaded.predict(["CCO"]).values).all()
