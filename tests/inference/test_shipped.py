"""The model that comes with the package: its card is true, and the installed package is all it needs."""

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import graphgps_pearl
from graphgps_pearl import config
from graphgps_pearl.data import molecules
from graphgps_pearl.data.datasets.wehi_logp import wehi_file
from graphgps_pearl.data.splits import random_split
from graphgps_pearl.inference.folder import without_places
from graphgps_pearl.inference.shipped import SHIPPED

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = SHIPPED / "wehi-logp"


@pytest.fixture(scope="module")
def facts() -> dict:
    return json.loads((FOLDER / "model.json").read_text())


def test_it_is_small_and_within_the_budget(facts):
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 3e6
    assert sum(facts["parameters"].values()) < 500_000


def test_its_config_is_the_one_in_configs():
    shipped = config.load(FOLDER / "config.yaml")
    assert config.dump(shipped) == config.dump(
        without_places(config.load(REPOSITORY / "configs" / "wehi-logp-bpearl.yaml"))
    )


def test_its_card_has_its_errors(facts):
    card = (FOLDER / "README.md").read_text()
    for split in ("train", "val", "test"):
        assert f"| {split} | {facts['metrics'][f'{split}_mae']:.4f} |" in card


def test_its_test_error_is_what_the_card_says(facts):
    with wehi_file().open(newline="") as lines:
        smiles = [row[0] for row in csv.reader(lines) if row]
    chosen = [smiles[i] for i in random_split(len(smiles), (0.8, 0.1, 0.1), 0)["test"]]
    wanted = np.array([molecules.penalised_logp(molecules.parse(text)) for text in chosen])
    predicted = graphgps_pearl.load("wehi-logp", device="cpu").predict(chosen)
    assert not predicted.errors
    error = np.abs(predicted.values[:, 0] - wanted).mean()
    assert error == pytest.approx(facts["metrics"]["test_mae"], rel=1e-3)
    assert error < 0.3 < 1.1 < np.abs(wanted - wanted.mean()).mean()
    # Where it is wrong: the card says it by the size of the largest ring.
    card = (FOLDER / "README.md").read_text()
    gaps, rings = np.abs(predicted.values[:, 0] - wanted), np.array([largest_ring(text) for text in chosen])
    for rows in (rings <= 6, rings == 7, rings > 7):
        assert f"{gaps[rows].mean():.2f} ({rows.sum()} of 1,000)" in card


def largest_ring(smiles: str) -> int:
    molecule = molecules.parse(smiles)
    return max((len(ring) for ring in molecule.GetRingInfo().AtomRings()), default=0)


def run(command: list[str | Path], where: Path) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def predicts_there(python: Path, where: Path) -> None:
    """Whether the package that this interpreter has installed answers, from a folder without the sources."""
    (where / "m.smi").write_text("CCO\nc1ccccc1\n")
    out = run([python, "-m", "graphgps_pearl", "predict", "wehi-logp", "m.smi"], where)
    assert len(out.splitlines()) == 3
    place = run([python, "-c", "import graphgps_pearl; print(graphgps_pearl.__file__)"], where)
    assert "site-packages" in place


@pytest.fixture
def sources(tmp_path) -> Path:
    """What is installed from, elsewhere: building leaves files behind."""
    copy = tmp_path / "sources"
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "graphgps_pearl", copy / "graphgps_pearl", ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    return copy


@pytest.mark.slow
def test_the_wheel_brings_the_model(sources, tmp_path):
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, sources], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {f"graphgps_pearl/inference/models/wehi-logp/{f.name}" for f in FOLDER.iterdir()} <= held
    assert not any(name.startswith(("tests/", "docs/")) for name in held)


@pytest.mark.slow
def test_a_fresh_environment_needs_nothing_but_the_package(sources, tmp_path):
    """``pip install .`` in an empty virtual environment; the versions are those of requirements.txt."""
    run([sys.executable, "-m", "venv", tmp_path / "venv"], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run([python, "-m", "pip", "install", "-q", "-c", REPOSITORY / "requirements.txt", sources], tmp_path)
    predicts_there(python, tmp_path)
