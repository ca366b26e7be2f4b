"""Runs on a user's own CSV file: what is refused before training, and what is never lost."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from helpers.csv_runs import SETS, Train, trainer, write_table
from helpers.small_runs import CONFIG as SMALL
from lightning.pytorch.accelerators import CPUAccelerator
from torch_geometric.data import Data

from graphgps_pearl import cli, config, networks
from graphgps_pearl.data import stages
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.registry import register
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.run import prepare, run, trainer_device


@pytest.fixture
def train(tmp_path: Path) -> Train:
    return trainer(tmp_path)


def one_error(capsys: pytest.CaptureFixture[str]) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def test_a_run_is_not_continued_on_other_data(train: Train, tmp_path: Path, capsys) -> None:
    assert train() == 0
    run = tmp_path / "results" / "mine" / "0"
    (run / "result.json").unlink()  # as if it had been interrupted
    assert train() == 0
    (run / "result.json").unlink()
    write_table(tmp_path / "mine.csv", sets=SETS[::-1])
    before = (run / "last.ckpt").read_bytes()
    assert train() == 2
    assert f"{run} was begun with other data" in one_error(capsys)
    assert (run / "last.ckpt").read_bytes() == before


def test_weights_without_a_config_are_not_continued(train: Train, tmp_path: Path, capsys) -> None:
    assert train() == 0
    run = tmp_path / "results" / "mine" / "0"
    (run / "config.yaml").unlink()
    assert train("optim.base_lr", 0.5) == 2
    assert "config.yaml cannot be read (FileNotFoundError)" in one_error(capsys)


@pytest.mark.parametrize(
    "words", [("dataset.target_columns", "[z]"), ("metric_best", "auc"), ("train.max_params", 10)]
)
def test_overwriting_with_a_mistake_keeps_the_old_run(train: Train, tmp_path: Path, words, capsys) -> None:
    assert train() == 0
    run = tmp_path / "results" / "mine" / "0"
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    assert train(*words, options=("--overwrite",)) == 2
    one_error(capsys)
    assert {file.name: file.read_bytes() for file in run.iterdir()} == before
    assert train("optim.base_lr", 0.01, options=("--overwrite",)) == 0
    assert [p.name for p in run.parent.iterdir() if p.is_dir() and p.name != "agg"] == ["0"]


def test_a_metric_that_the_labels_leave_undefined(train: Train, tmp_path: Path, capsys) -> None:
    write_table(tmp_path / "mine.csv", [0, 1] * 4 + [0, 0, 0, 1])
    words = ("dataset.task_type", "classification_binary", "model.loss_fun", "cross_entropy")
    assert train(*words) == 2
    assert "metric_best: auc is not defined on split 'val', whose labels are all the same" in one_error(
        capsys
    )
    assert train(*words, "metric_best", "accuracy") == 0


def test_predictions_have_the_names_of_the_classes(train: Train, tmp_path: Path, capsys) -> None:
    write_table(tmp_path / "mine.csv", ["1", "2", "3.0", "1.0", "2", "3", "1", "2", "3", "1", "2", "3"])
    assert train("dataset.task_type", "classification", "model.loss_fun", "cross_entropy") == 0
    run = tmp_path / "results" / "mine" / "0"
    assert json.loads((run / "data.json").read_text())["class_names"] == ["1", "2", "3"]
    (tmp_path / "some.smi").write_text("CCO\n")
    for model in (run, tmp_path / "model"):
        capsys.readouterr()
        assert cli.main(["predict", str(model), str(tmp_path / "some.smi")]) == 0
        assert "prob_y=1,prob_y=2,prob_y=3" in capsys.readouterr().out
        if model == run:
            assert cli.main(["export", str(run), "-o", str(tmp_path / "model")]) == 0


@pytest.mark.parametrize("broken", ["{", "[]", '{"name": 3}'])
def test_damaged_facts_of_a_run_are_one_line(train: Train, tmp_path: Path, broken: str, capsys) -> None:
    assert train() == 0
    run = tmp_path / "results" / "mine" / "0"
    (run / "data.json").write_text(broken)
    (tmp_path / "some.smi").write_text("CCO\n")
    assert cli.main(["predict", str(run), str(tmp_path / "some.smi")]) == 2
    assert "data.json: is" in one_error(capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("out_dir", "{tmp}/mine.csv"), "mine.csv/mine: cannot be made or written (Not a directory)"),
        (("accelerator", "cuda"), "accelerator = cuda: "),
        (
            ("dataset.features", "attentivefp"),
            "dataset.node_encoder_name: Atom reads OGB's integer features and mine has real-valued ones",
        ),
        (("dataset.split_index", 1), "dataset.split_mode standard has one split"),
        (("dataset.target_columns", "[y, y]"), "dataset.target_columns = ['y', 'y']: names a column twice"),
        (("metric_best", "mse"), "metric_best"),
    ],
)
def test_mistakes_are_one_line(train: Train, tmp_path: Path, words, message, capsys) -> None:
    import torch

    if "cuda" in words and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert train(*(str(word).replace("{tmp}", str(tmp_path)) for word in words)) == 2
    assert message in one_error(capsys)


def test_preparing_in_workers_moves_no_random_state(train: Train, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(stages, "_PART", 4)
    words = ("dataset.task_type", "classification", "model.loss_fun", "cross_entropy")
    words += ("dataset.node_encoder_name", "Atom+RWSE", "posenc_RWSE.dim_pe", 4)
    words += ("posenc_RWSE.model", "Linear", "posenc_RWSE.kernel.times", "[2, 3]")
    write_table(tmp_path / "mine.csv", [0, 1] * 6)
    rows = []
    for tag in ("fresh", "cached"):
        assert train(*words, "num_workers", 1, "name_tag", tag) == 0
        result = json.loads((tmp_path / "results" / f"mine-{tag}" / "0" / "result.json").read_text())
        rows.append(result["best"]["train_loss"])
    assert rows[0] == rows[1]


def test_auto_is_a_gpu_of_nvidia_or_the_cpu(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    """Apple's MPS has neither float64 nor CSR products: every run would fail there."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    caplog.set_level("INFO")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert trainer_device("auto") == "cpu"
    assert "MPS" in caplog.text and "accelerator" in caplog.text
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert trainer_device("auto") == "gpu" and trainer_device("cuda") == "gpu"
    assert trainer_device("cpu") == "cpu" and CPUAccelerator.is_available()


@pytest.mark.parametrize(
    "words, key",
    [
        (["dataset.format", "PyG-Planetoids"], "dataset.format: 'PyG-Planetoids'.*PyG-Planetoid"),
        (["dataset.name", "wehi-logq"], "dataset.name: 'wehi-logq'.*wehi-logp"),
        (["dataset.task", "node", "gnn.head", "node"], "dataset.task: 'node'"),
    ],
)
@pytest.mark.parametrize(
    "more",
    [["metric_best", "accuracy-SBM", "metric_agg", "argmax"], ["model.loss_fun", "weighted_something"]],
)
def test_the_dataset_is_named_first(words, key, more, tmp_path, monkeypatch) -> None:
    from torch_geometric.graphgym import register as graphgym

    register()
    monkeypatch.setattr(graphgym, "loader_dict", {})
    cfg = config.parse(SMALL, [*words, *more])
    with pytest.raises(ConfigError, match=key):
        run(cfg, RunFolder(tmp_path / "0"))


def test_first_weights_depend_on_the_seed_alone(monkeypatch) -> None:
    """A loader that a user registers may set torch's seed, as that of docs/examples/own_dataset.py does."""
    from torch_geometric.graphgym import register as graphgym

    def loader(form: str, name: str, folder: str) -> list[Data]:
        torch.manual_seed(7)
        edges = torch.tensor([[0, 1, 2], [1, 2, 0]])
        return [Data(x=torch.ones(3, 1), edge_index=edges, y=torch.randn(1, 1)) for _ in range(10)]

    register()
    monkeypatch.setattr(graphgym, "loader_dict", {"mine": loader})
    example = Path(__file__).parents[2] / "docs" / "examples" / "own_dataset.yaml"
    weights = []
    for seed in (0, 1, 0):
        torch.manual_seed(seed + 5)
        network, *_ = prepare(config.load(example, ["seed", seed]))
        weights.append(torch.nn.utils.parameters_to_vector(network.parameters()))
    assert torch.equal(weights[0], weights[2]) and not torch.equal(weights[0], weights[1])


def test_layers_that_torch_cannot_compile_are_one_line(runs, capsys, monkeypatch) -> None:
    def backend(*_: object) -> None:
        raise RuntimeError("C++ compile error\nthe command was g++")

    compile_layers = networks.compile_layers
    monkeypatch.setattr(networks, "compile_layers", lambda network: compile_layers(network, backend=backend))
    assert runs.train("train.compile", "True") == 2
    assert re.search(r"train\.compile = True: .*C\+\+ compile error.*set it False", one_error(capsys))
