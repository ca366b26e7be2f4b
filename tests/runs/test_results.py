"""Results of several seeds: what is averaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.csv_runs import Train, trainer

from graphgps_pearl import cli


@pytest.fixture
def train(tmp_path: Path) -> Train:
    return trainer(tmp_path)


def test_runs_of_other_settings_are_not_averaged(train: Train, tmp_path: Path, caplog, capsys) -> None:
    assert train() == 0
    assert train("seed", 1, "optim.base_lr", 0.5) == 0
    summary = json.loads((tmp_path / "results" / "mine" / "agg" / "results.json").read_text())
    assert summary["seeds"] == [1]
    assert "0 is left out of the mean: it has optim.base_lr = 0.01 instead of 0.5" in caplog.text
    capsys.readouterr()
    assert cli.main(["report", str(tmp_path / "results")]) == 0
    said = "not in the mean: mine, seed 0: it has optim.base_lr = 0.01 instead of 0.5"
    assert said in capsys.readouterr().out


def test_a_damaged_run_beside_it_does_not_end_a_run_badly(train: Train, tmp_path: Path, caplog) -> None:
    assert train() == 0
    (tmp_path / "results" / "mine" / "0" / "config.yaml").write_text("")
    assert train("seed", 1) == 0
    assert "0 is left out: config.yaml is damaged" in caplog.text
    summary = json.loads((tmp_path / "results" / "mine" / "agg" / "results.json").read_text())
    assert summary["seeds"] == [1]
