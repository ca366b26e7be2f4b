"""A table of one's own from training to prediction: several targets of any scale, in their own unit."""

import csv
from pathlib import Path

import pytest
from helpers.small_runs import CONFIG, train

import graphgps_pearl
from graphgps_pearl.runs.folder import RunFolder

SMILES = ["C" * n + end for n in range(1, 11) for end in ("O", "N", "C", "F")]


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    folder = tmp_path_factory.mktemp("own")
    carbons = [text.count("C") for text in SMILES]
    rows = [f"{text};{300 + 40 * n};{1e-3 * n}" for text, n in zip(SMILES, carbons, strict=True)]
    (folder / "mine.csv").write_text("\n".join(["SMILES;boiling;small", *rows]) + "\n")
    settings = (
        CONFIG.replace("format: embedded", "format: csv")
        .replace("name: wehi-logp", f"name: mine\n  path: {folder / 'mine.csv'}\n  split_mode: random")
        .replace("subset: 50", f"dir: {folder / 'data'}")
        .replace("max_epoch: 3", "max_epoch: 40")
        .replace("base_lr: 0.002", "base_lr: 0.01")
        .replace("Atom+RPEARL", "Atom")
        .replace("graph_pooling: mean", "graph_pooling: add")
        .replace("san_graph", "graph")
        .replace("dropout: 0.1", "dropout: 0")
    )
    (folder / "mine.yaml").write_text(settings)
    assert train(folder / "mine.yaml", folder / "run", []) == 0
    return RunFolder(folder / "run")


def test_metrics_are_in_the_unit_of_the_targets(run: RunFolder) -> None:
    best = run.read_result()["best"]
    # Guessing the mean gives an error of about 100 degrees, averaged with the small target: 50.
    assert 0.1 < best["test_mae"] < 25
    assert best["train_loss"] < 1, "the loss is of standardised targets"


def test_each_of_several_targets_has_its_metrics(run: RunFolder) -> None:
    with run.targets.open(newline="") as file:
        rows = {(row["split"], row["target"]): row for row in csv.DictReader(file)}
    assert set(rows) == {(s, t) for s in ("train", "val", "test") for t in ("boiling", "small")}
    mae = {target: float(rows["test", target]["mae"]) for target in ("boiling", "small")}
    assert mae["boiling"] > 0.1 and mae["small"] < 2e-3
    assert sum(mae.values()) / 2 == pytest.approx(run.read_result()["best"]["test_mae"], rel=1e-4)
    assert float(rows["train", "small"]["r2"]) > 0.5


def test_predictions_are_in_the_unit_of_the_targets(run: RunFolder) -> None:
    predicted = graphgps_pearl.load(run.path, device="cpu").predict(SMILES).values
    boiling = [300 + 40 * text.count("C") for text in SMILES]
    gaps = [abs(row[0] - wanted) for row, wanted in zip(predicted, boiling, strict=True)]
    assert sum(gaps) / len(gaps) < 50
    assert abs(predicted[:, 1]).max() < 0.05


def test_the_same_file_is_read_for_prediction(run: RunFolder, tmp_path: Path, capsys) -> None:
    from graphgps_pearl import cli

    file = run.path.parent / "mine.csv"
    assert cli.main(["predict", str(run.path), str(file), "-o", str(tmp_path / "out.csv")]) == 0
    with (tmp_path / "out.csv").open(newline="") as out:
        assert len(list(csv.reader(out))) == 1 + len(SMILES)
