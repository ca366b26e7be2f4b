"""The example scripts, at a size that takes seconds."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_gine_with_bpearl_learns():
    errors = module("gine_bpearl").main(count=96, epochs=4)
    assert errors[-1] < 0.8 * errors[0]


def test_gpsconv_with_bpearl_tells_csl_apart():
    assert module("gpsconv_pearl").main() == pytest.approx({"without": 0.1, "B-PEARL": 1.0})


def test_a_dataset_of_ones_own_trains(tmp_path, monkeypatch):
    from torch_geometric.graphgym import register

    monkeypatch.setattr(register, "loader_dict", dict(register.loader_dict))
    example = module("own_dataset")
    words = ["out_dir", str(tmp_path), "optim.max_epoch", "4"]
    assert example.cli.main(["train", "--cfg", str(EXAMPLES / "own_dataset.yaml"), *words]) == 0
    best = json.loads((tmp_path / "own_dataset" / "0" / "result.json").read_text())["best"]
    graphs = example.load("mine", "triangles", "")
    counts = torch.cat([graph.y.flatten() for graph in graphs])
    assert best["train_mae"] < 0.8 * (counts - counts.mean()).abs().mean()


def test_every_example_is_tested():
    names = {"gine_bpearl", "gpsconv_pearl", "own_dataset"}
    assert {file.stem for file in EXAMPLES.glob("*.py")} == names
