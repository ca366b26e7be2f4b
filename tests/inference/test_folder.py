"""Model folders: hostile ones end in one line, and nothing of the training machine is in them."""

import shutil
import time
from pathlib import Path

import pytest
from attacks import folders as hostile

from graphgps_pearl import config
from graphgps_pearl.errors import UserError
from graphgps_pearl.inference import folder as folders
from graphgps_pearl.inference.loading import load
from graphgps_pearl.runs.model_folder import SHIPPED


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED / "wehi-logp", tmp_path / "model"))


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


def test_a_seed_is_no_size(trained):
    run = trained("Atom+RPEARL", "posenc_RPEARL.eval_seed", "2000000000", "optim.max_epoch", "1")
    assert load(run, "cpu").predict(["CCO"]).errors == {}


def test_no_path_of_the_training_machine_is_in_a_model_folder():
    places = ["out_dir", "/home/me/results", "dataset.dir", "/home/me/data", "dataset.path", "/home/me/a.csv"]
    cfg = config.load("quickstart", [*places, "pretrained.dir", "/home/me/results/zinc-bpearl/0"])
    exported = folders.without_places(cfg)
    assert "/home" not in config.dump(exported)
    assert (exported.dataset.path, exported.pretrained.dir) == ("a.csv", "zinc-bpearl/0")
