import pytest

from graphgps_pearl.errors import UserError
from graphgps_pearl.runs.folder import RunFolder

CONFIG = "seed: 0\ngt:\n  layers: 3\nnum_workers: 0\n"


def test_a_changed_config_is_refused_by_key_once_there_is_something_to_lose(tmp_path):
    folder = RunFolder(tmp_path / "run" / "0")
    folder.open(CONFIG)
    folder.open(CONFIG.replace("3", "4"))  # nothing was trained yet: the new config simply takes its place
    folder.last.touch()
    folder.open(CONFIG.replace("3", "4").replace("num_workers: 0", "num_workers: 2"))
    with pytest.raises(UserError, match=r"gt.layers = 4 instead of 5.*--overwrite.*name_tag"):
        folder.open(CONFIG.replace("3", "5"))
    folder.open(CONFIG.replace("3", "5"), overwrite=True)
    assert not folder.last.exists()


def test_a_key_that_came_later_was_at_its_default(tmp_path):
    folder = RunFolder(tmp_path / "run" / "0")
    folder.open(CONFIG)
    folder.last.touch()
    folder.open(f"{CONFIG}posenc_BPEARL:\n  plan: batch\n")
    with pytest.raises(UserError, match=r"posenc_BPEARL.plan = 'batch' instead of 'cached'"):
        folder.open(f"{CONFIG}posenc_BPEARL:\n  plan: cached\n")


def test_resumed_metrics_drop_what_will_be_written_again(tmp_path):
    folder = RunFolder(tmp_path)
    folder.start_metrics(["epoch", "val_mae"], 0)
    for epoch in range(4):
        folder.append_metrics({"epoch": epoch, "val_mae": epoch / 10})
    with folder.metrics.open("a") as file:
        file.write("4")  # a crash in the middle of a line
    assert [row["epoch"] for row in folder.read_metrics()] == ["0", "1", "2", "3"]
    folder.start_metrics(["epoch", "val_mae"], 2)
    folder.append_metrics({"epoch": 2, "val_mae": 0.5})
    assert [(row["epoch"], row["val_mae"]) for row in folder.read_metrics()] == [
        ("0", "0.0"),
        ("1", "0.1"),
        ("2", "0.5"),
    ]
