"""The files of a model folder: nothing is read of one that is not what was exported."""

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphgps_pearl.errors import UserError
from graphgps_pearl.runs import model_folder

SHIPPED_MODEL = model_folder.SHIPPED / "wehi-logp"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SHIPPED_MODEL, tmp_path / "model"))


@pytest.mark.parametrize("name", ["model.safetensors", "config.yaml", "model.json"])
def test_a_wrong_bit_is_never_used(model, name):
    whole, rng = (model / name).read_bytes(), random.Random(0)
    description = json.loads((model / "model.json").read_text())
    for _ in range(20):
        content, place = bytearray(whole), rng.randrange(len(whole))
        content[place] ^= 1 << rng.randrange(8)
        (model / name).write_bytes(content)
        try:
            model_folder.read_description(model)
        except UserError as error:
            assert name in str(error)
        else:  # only the layout of the JSON
            assert name == "model.json" and json.loads(content) == description


def test_an_edited_card_is_mentioned_and_no_more(model, caplog):
    (model / "README.md").write_text("My own words.\n")
    assert model_folder.read_description(model)["name"] == "wehi-logp"
    assert "README.md is not the one that was exported" in caplog.text


def test_the_shipped_models_are_the_ones_that_were_exported():
    """After a change to one of its files: ``write_description`` again."""
    for name in model_folder.shipped_names():
        content = json.loads((model_folder.SHIPPED / name / "model.json").read_text())
        assert set(content["files"]) == {"model.safetensors", "config.yaml", "README.md"}
        assert model_folder.read_description(model_folder.SHIPPED / name)["chosen"] == "chosen by validation"


def test_a_folder_comes_before_a_shipped_model_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert model_folder.find_model("wehi-logp") == SHIPPED_MODEL
    assert model_folder.find_model("wehi") is None
    (tmp_path / "wehi-logp").mkdir()
    assert model_folder.find_model("wehi-logp") is None  # a folder of something else
    shutil.copytree(SHIPPED_MODEL, tmp_path / "wehi-logp", dirs_exist_ok=True)
    assert model_folder.find_model("wehi-logp") == Path("wehi-logp")


def test_models_are_named_without_torch():
    program = "import sys; from graphgps_pearl.runs.model_folder import shipped_names as names; names()"
    subprocess.run([sys.executable, "-c", f"{program}; sys.exit('torch' in sys.modules)"], check=True)
