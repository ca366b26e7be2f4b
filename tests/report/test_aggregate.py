"""Folds under two protocols: each fold's own best epoch, and the best epoch of the mean curve."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from graphgps_pearl import config
from graphgps_pearl.report.aggregate import describe_folds, write_aggregate
from graphgps_pearl.report.pictures import BEST, results
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.runs.results import Run

VAL = ([0.5, 0.9, 0.6], [0.7, 0.6, 0.8])
TEST = ([0.6, 0.5, 0.9], [0.4, 0.9, 0.8])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for fold, (val, test) in enumerate(zip(VAL, TEST, strict=True)):
        cfg = config.load(config.find("reddit-b-none"), ["dataset.split_index", fold])
        run = RunFolder(tmp_path / "reddit" / str(fold))
        run.open(config.dump(cfg))
        rows = [
            {"epoch": e, "seconds": 1.0, "val_accuracy": v, "test_accuracy": t}
            for e, (v, t) in enumerate(zip(val, test, strict=True))
        ]
        run.write_metrics(list(rows[0]), rows)
        best = max(rows, key=lambda row: row["val_accuracy"])
        facts = {
            "config": "reddit",
            "seed": 0,
            "splits": ["train", "val", "test"],
            "parameters": {"encoder": 0},
        }
        costs = {"epochs": 3, "seconds_per_epoch": 1.0, "memory_mb": 1.0, "prepare_seconds": 0.0}
        chosen = {"metric": "val_accuracy", "larger_is_better": True, "best": best}
        run.write(run.result, json.dumps(facts | costs | chosen))
    return tmp_path / "reddit"


def test_both_numbers_are_said(folder: Path) -> None:
    summary = write_aggregate(folder)
    assert summary is not None
    assert summary["mean"]["test_accuracy"] == pytest.approx((0.5 + 0.8) / 2)
    assert summary["best_of_mean_curve"] == {
        "column": "test_accuracy",
        "epoch": 3,
        "mean": pytest.approx(0.85),
        "std": pytest.approx(0.0707, abs=1e-4),
    }
    said = describe_folds(summary)
    assert "0.65" in said and "0.85" in said and "epoch 3" in said
    assert said in (folder / "agg" / "results.md").read_text()


def test_a_custom_metric_may_have_underscores(folder: Path) -> None:
    for fold in (0, 1):
        run = RunFolder(folder / str(fold))
        for file in (run.metrics, run.result):
            run.write(file, file.read_text().replace("_accuracy", "_my_own_accuracy"))
    summary = write_aggregate(folder)
    assert summary is not None and summary["best_of_mean_curve"]["column"] == "test_my_own_accuracy"


def test_tensorboard_has_a_custom_metric_with_underscores() -> None:
    best = {"epoch": 1, "val_my_own": 0.5, "test_my_own": 0.4, "test_own": 0.1}
    run = Run(Path("a/0"), {"splits": ["val", "test"], "metric": "val_my_own", "best": best})
    assert results(run) == {f"{BEST}/val_my_own": 0.5, f"{BEST}/test_my_own": 0.4}


def test_values_that_are_not_finite_are_in_no_mean_and_counted(folder: Path) -> None:
    for fold, value in enumerate((math.nan, math.inf)):
        run = RunFolder(folder / str(fold))
        result = run.read_result()
        assert result is not None
        result["best"] |= {"grad_norm": value, "train_accuracy": 0.5, "train_f1": value}
        if fold:
            result["best"]["test_accuracy"] = value
        run.write(run.result, json.dumps(result))
    summary = write_aggregate(folder)
    assert summary is not None
    assert summary["mean"]["grad_norm"] is None
    assert (summary["mean"]["test_accuracy"], summary["count"]["test_accuracy"]) == (0.5, 1)
    json.loads((folder / "agg" / "results.json").read_text(), parse_constant=pytest.fail)
    assert "0.5000 ± 0.0000 (1 of 2)" in (folder / "agg" / "results.md").read_text()
