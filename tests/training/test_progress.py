"""What a training prints: a line per epoch with every split, in 80 columns."""

import math

import pytest

from graphgps_pearl.training.progress import Progress
from graphgps_pearl.training.recorder import Recorder

SPLITS = ("train", "iid_val", "iid_test", "ood_val", "ood_test")


@pytest.fixture
def progress(tmp_path):
    def make(splits, column):
        recorder = Recorder(tmp_path, ["epoch"], column, larger_is_better=False)
        values = {f"{split}_auroc": 0.5 + i / 100 for i, split in enumerate(splits)}
        recorder.last_row = values | {"epoch": 6, "seconds": 12.34, "lr": 1e-3, "train_loss": 0.25}
        recorder.best_row = dict(recorder.last_row)
        return Progress(recorder, splits, "auroc")

    return make


@pytest.mark.parametrize("splits", [SPLITS, ("train", "val", "test")])
def test_lines_have_all_splits_and_fit_80_columns(progress, splits):
    shown = progress(splits, f"{splits[1]}_auroc")
    header, line = shown.lines("7/2000", "1h 02m", 80)
    assert max(len(header), len(line)) <= 80
    assert header.split()[: 1 + len(splits)] == ["epoch", *splits]
    values = [f"{0.5 + i / 100:.4f}" for i in range(len(splits))]
    assert line.split()[: 2 + len(splits)] == ["7/2000", *values, "*"]
    assert "1h 02m" in line
    wide_header, wide = shown.lines("7/2000", "1h 02m", 10_000)
    assert wide_header.split()[-2:] == ["lr", "loss"]
    assert wide.split()[-2:] == ["1.0e-03", "0.2500"]


def test_an_epoch_without_evaluation_shows_that(progress):
    shown = progress(("train", "val"), "val_auroc")
    del shown.recorder.last_row["val_auroc"]
    shown.recorder.best_row = {"epoch": 2, "val_auroc": math.nan}
    assert shown.lines("7/9", "1s", 80)[1].split()[:4] == ["7/9", "0.5000", "-", "12.3"]
