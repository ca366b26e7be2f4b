import random
import shutil
from pathlib import Path

import pytest
import torch

from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.runs import checkpoints
from graphgps_pearl.runs.checkpoints import find_checkpoint, read_checkpoint, trained_weights, weights_of
from graphgps_pearl.runs.folder import RunFolder

WEIGHTS = {"network.weight": torch.zeros(3, 4)}


def content(epoch: int, batches: int = 0) -> dict:
    row = {"epoch": float(epoch - 1), "val_mae": 1.0 / max(epoch, 1)}
    return {
        "state_dict": {"network.weight": torch.full((3, 4), float(epoch))},
        "optimizer_states": [],
        "loops": {},
        "callbacks": {"Recorder": {"best_row": row, "last_row": row}},
        "position": {"epoch": epoch, "batches": batches},
    }


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def save(folder: RunFolder, epoch: int, *, best: bool = False, batches: int = 0) -> None:
    checkpoints.write_checkpoint(checkpoints.new_checkpoint(folder), content(epoch, batches))
    checkpoints.keep_checkpoint(folder, best=best)


def flip(path: Path, bit: int) -> None:
    damaged = bytearray(path.read_bytes())
    damaged[bit // 8] ^= 1 << bit % 8
    path.write_bytes(damaged)


def test_two_of_the_last_and_two_of_the_best_are_kept(folder):
    for epoch, best in ((1, True), (2, True), (3, False), (4, True), (5, False)):
        save(folder, epoch, best=best)
    kept = {path.name: read_checkpoint(path)["position"]["epoch"] for path in folder.path.iterdir()}
    assert kept == {"last.ckpt": 5, "previous.ckpt": 4, "best.ckpt": 4, "previous-best.ckpt": 2}


def test_a_damaged_best_does_not_replace_the_good_one_before_it(folder):
    save(folder, 1, best=True)
    save(folder, 2, best=True)
    flip(folder.best, 3000)
    save(folder, 3, best=True)
    assert read_checkpoint(folder.best)["position"]["epoch"] == 3
    assert read_checkpoint(folder.previous_best)["position"]["epoch"] == 1


def test_a_flipped_bit_in_the_best_is_said_and_the_best_before_it_is_used(folder, caplog):
    save(folder, 1, best=True)
    save(folder, 2, best=True)
    whole, rng = folder.best.read_bytes(), random.Random(0)
    for bit in rng.sample(range(len(whole) * 8), 200):
        folder.best.write_bytes(whole)
        flip(folder.best, bit)
        caplog.clear()
        found = trained_weights(folder)
        (record,) = caplog.records
        assert "best.ckpt: is damaged" in record.getMessage() and "previous-best" in record.getMessage()
        assert found.path == folder.previous_best and "best but one" in found.chosen
        assert found.metrics["epoch"] == 0


@pytest.mark.parametrize("damage", ["missing", "damaged", "truncated"])
def test_the_last_weights_are_never_taken_for_the_best(folder, damage):
    save(folder, 1, best=True)
    save(folder, 2)
    if damage == "missing":
        folder.best.unlink()
    else:
        whole = folder.best.read_bytes()
        folder.best.write_bytes(whole[:-100] if damage == "truncated" else whole.replace(b"P", b"Q"))
    with pytest.raises(DataError, match=r"best\.ckpt.*last\.ckpt"):
        trained_weights(folder)
    named = weights_of(folder.last)
    assert named.metrics["epoch"] == 1 and "not chosen" in named.chosen
    save(folder, 3, batches=2)
    assert weights_of(folder.last).metrics == {} and "2 batches" in weights_of(folder.last).chosen


def test_the_best_is_chosen_by_validation(folder, caplog):
    save(folder, 1, best=True)
    save(folder, 2)
    found = trained_weights(folder)
    assert (found.path, found.chosen, found.metrics["epoch"]) == (folder.best, "chosen by validation", 0)
    assert not caplog.records
    with pytest.raises(DataError, match="train it first"):
        trained_weights(RunFolder(folder.path / "nowhere"))


UNUSABLE = {
    "no weights": {"state_dict": {}},
    "wrong shape": {"state_dict": {"network.weight": torch.zeros(3, 5)}},
    "no tensor": {"state_dict": {"network.weight": 3}},
    "no state": {"state_dict": None},
    "no optimiser": {"optimizer_states": None},
    "negative epoch": {"position": {"epoch": -1, "batches": 0}},
    "half an epoch": {"position": {"epoch": 0.5, "batches": 0}},
    "a true epoch": {"position": {"epoch": True, "batches": 0}},
    "no batches": {"position": {"epoch": 1}},
    "a list": {"position": [1, 2]},
}


@pytest.mark.parametrize("change", UNUSABLE.values(), ids=UNUSABLE)
def test_what_cannot_be_continued_falls_back_to_the_one_before(folder, caplog, change):
    save(folder, 1)
    broken = {key: value for key, value in {**content(2), **change}.items() if value is not None}
    checkpoints.write_checkpoint(checkpoints.new_checkpoint(folder), broken)
    checkpoints.keep_checkpoint(folder)
    found = find_checkpoint(folder, WEIGHTS)
    assert found == checkpoints.Checkpoint(folder.previous, 1, 0)
    assert len(caplog.records) == 1 and "last.ckpt cannot be read" in caplog.text
    assert folder.path.joinpath("last.damaged").exists()
    flip(folder.previous, 3000)
    with pytest.raises(UserError, match="no checkpoint can be read"):
        find_checkpoint(folder, WEIGHTS)


def test_a_copy_elsewhere_is_still_whole(folder, tmp_path):
    save(folder, 1, best=True)
    shutil.copy(folder.best, tmp_path / "copy.ckpt")
    assert read_checkpoint(tmp_path / "copy.ckpt")["position"]["epoch"] == 1
    with pytest.raises(DataError, match="no such checkpoint"):
        read_checkpoint(tmp_path / "nowhere.ckpt")
