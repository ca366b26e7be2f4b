"""The models that come with the package: their cards are true, and the installed package is all it needs."""

import ast
import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch_geometric.data import Data

import graphgps_pearl
from graphgps_pearl import config
from graphgps_pearl.data import molecules
from graphgps_pearl.data.datasets.wehi_logp import wehi_file
from graphgps_pearl.data.splits import random_split
from graphgps_pearl.inference.folder import without_places
from graphgps_pearl.runs.model_folder import SHIPPED, read_description, shipped_names

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = SHIPPED / "wehi-logp"


MODELS = {  # the config and the words of the command that made each
    "wehi-logp": ("wehi-logp-bpearl", []),
    "zinc-bpearl": (
        "zinc-bpearl-muon",
        [
            *("seed", "1", "optim.max_epoch", "120", "optim.num_warmup_epochs", "3"),
            *("train.eval_period", "5", "gt.attn_dropout", "0.5"),
            *("pretrained.dir", "results/zinc-bpearl-muon-cycle2"),
            *("pretrained.reset_prediction_head", "False"),
        ],
    ),
    "peptides-func-bpearl": ("peptides-func-bpearl-gine", []),
    "drugood-ec50-rpearl": (
        "drugood-rpearl",
        [
            *("seed", "1", "dataset.name", "lbap_core_ec50_assay", "train.eval_period", "5"),
            *("train.ema_decay", "0.999", "train.bn_reestimate", "1600", "train.early_stopping", "6"),
        ],
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


def facts_of(name: str) -> dict:
    return json.loads((SHIPPED / name / "model.json").read_text())


@pytest.fixture(scope="module")
def facts() -> dict:
    return facts_of("wehi-logp")


def test_every_shipped_model_is_tested():
    assert sorted(MODELS) == shipped_names()


@every_model
def test_it_is_small_and_within_the_budget(name):
    assert sum(file.stat().st_size for file in (SHIPPED / name).iterdir()) < 2e6
    assert sum(facts_of(name)["parameters"].values()) < 500_000


@every_model
def test_its_config_is_the_one_in_configs(name):
    file, words = MODELS[name]
    made = without_places(config.load(REPOSITORY / "configs" / f"{file}.yaml", words))
    shipped = config.load(SHIPPED / name / "config.yaml")
    for cfg in (made, shipped):
        cfg.defrost()
        cfg.name_tag = ""
    assert config.dump(shipped) == config.dump(made)


@every_model
def test_its_files_are_those_of_its_checksums(name, caplog):
    read_description(SHIPPED / name)
    assert not caplog.records, (
        "a card that was edited: write_description() with what read_description() gives"
    )


@every_model
def test_its_card_has_its_errors(name):
    card, facts = (SHIPPED / name / "README.md").read_text(), facts_of(name)
    first = next(line for line in card.splitlines() if line.startswith("| split |")).split(" | ")[1]
    splits = [name.removesuffix("_loss") for name in facts["metrics"] if name.endswith("_loss")]
    assert len(splits) >= 3
    for split in splits:
        assert f"| {split} | {facts['metrics'][f'{split}_{first}']:.4f} |" in card


@pytest.mark.realdata
def test_the_model_of_zinc_has_the_error_of_its_card_on_the_official_test_molecules(shared_data):
    table = np.load(shared_data / "zinc12k" / "test.npz", allow_pickle=False)
    nodes, edges = (table[key].astype(int).cumsum()[:-1] for key in ("num_nodes", "num_edges"))
    columns = [np.split(table["x"].astype(int), nodes)]
    columns += [np.split(table[key].astype(int), edges) for key in ("src", "dst", "edge_attr")]
    graphs = [
        Data(
            x=torch.from_numpy(x).unsqueeze(1),
            edge_index=torch.from_numpy(np.stack([src, dst])),
            edge_attr=torch.from_numpy(kind),
        )
        for x, src, dst, kind in zip(*columns, strict=True)
    ]
    predicted = np.concatenate(graphgps_pearl.load("zinc-bpearl", device="cpu").predict_graphs(graphs))
    error = np.abs(predicted - table["y"]).mean()
    assert error == pytest.approx(facts_of("zinc-bpearl")["metrics"]["test_mae"], rel=1e-4)
    assert error < 0.0661


@pytest.mark.slow
@pytest.mark.realdata
def test_the_model_of_peptides_has_the_precision_of_its_card_on_the_official_test_molecules(shared_data):
    folder = shared_data / "peptides"
    with gzip.open(folder / "peptide_multi_class_dataset.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    chosen = [rows[i] for i in np.load(folder / "splits.npz")["test"]]
    true = np.array([ast.literal_eval(row["labels"]) for row in chosen])
    model = graphgps_pearl.load("peptides-func-bpearl", device="cpu")
    predicted = model.predict([row["smiles"] for row in chosen])
    assert not predicted.errors
    found = np.mean([average_precision_score(true[:, k], predicted.values[:, k]) for k in range(10)])
    # Logits that are far from zero are the same probability in float32: a few ranks are ties.
    assert found == pytest.approx(facts_of("peptides-func-bpearl")["metrics"]["test_ap"], abs=5e-4)


@pytest.mark.slow
@pytest.mark.realdata
def test_the_model_of_drugood_has_the_auc_of_its_card_on_new_assays(shared_data):
    with gzip.open(shared_data / "drugood" / "lbap_core_ec50_assay.json.gz", "rt") as file:
        rows = json.load(file)["split"]["ood_test"]
    model = graphgps_pearl.load("drugood-ec50-rpearl", device="cpu")
    predicted = model.predict([r["smiles"] for r in rows], tables=1)  # as the evaluation in training
    assert not predicted.errors
    found = roc_auc_score([r["cls_label"] for r in rows], predicted.values[:, 0])
    assert found == pytest.approx(facts_of("drugood-ec50-rpearl")["metrics"]["ood_test_auc"], abs=5e-4)


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
    for name in ("graphgps_pearl", "configs"):
        shutil.copytree(REPOSITORY / name, copy / name, ignore=leave)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, copy)
    return copy


@pytest.mark.slow
def test_the_wheel_brings_the_model(sources, tmp_path):
    run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", tmp_path, sources], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {f"graphgps_pearl/models/wehi-logp/{f.name}" for f in FOLDER.iterdir()} <= held
    assert not any(name.startswith(("tests/", "docs/")) for name in held)


@pytest.mark.slow
def test_a_fresh_environment_needs_nothing_but_the_package(sources, tmp_path):
    """``pip install .`` in an empty virtual environment; the versions are those of requirements.txt."""
    run([sys.executable, "-m", "venv", tmp_path / "venv"], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(
        [python, "-m", "pip", "install", "-q", "-c", REPOSITORY / "requirements.txt", f"{sources}[train]"],
        tmp_path,
    )
    predicts_there(python, tmp_path)
