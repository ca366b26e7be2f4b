import time
from pathlib import Path

import pytest

from graphgps_pearl import config
from graphgps_pearl.errors import UserError
from graphgps_pearl.files import DamagedFileError
from graphgps_pearl.runs.folder import FAILURE, RunFolder
from graphgps_pearl.runs.results import read_run, readable

CONFIG = "seed: 0\ngt:\n  layers: 3\nnum_workers: 0\n"


def test_a_changed_config_is_refused_by_key_once_there_is_something_to_lose(tmp_path):
    folder = RunFolder(tmp_path / "run" / "0")
    folder.open(CONFIG)
    folder.open(CONFIG.replace("3", "4"))  # nothing was trained yet: the new config simply takes its place
    folder.last.touch()
    folder.open(CONFIG.replace("3", "4").replace("num_workers: 0", "num_workers: 2"))
    folder.open(CONFIG.replace("3", "4") + "wandb:\n  use: true\n  project: mine\n")
    with pytest.raises(UserError, match=r"gt.layers = 4 instead of 5.*--overwrite.*name_tag"):
        folder.open(CONFIG.replace("3", "5"))
    folder.open(CONFIG.replace("3", "5"), overwrite=True)
    assert not folder.last.exists()


def test_a_fold_is_the_same_among_any_others(tmp_path):
    folder = RunFolder(tmp_path / "run" / "1")
    in_folds = CONFIG + "dataset:\n  split_index: 1\nrun_multiple_splits: {}\n"
    folder.open(in_folds.format([0, 1]))
    folder.last.touch()
    folder.open(in_folds.format([0, 1, 2]))
    with pytest.raises(UserError, match=r"run_multiple_splits = \[0, 1\] instead of \[\]"):
        folder.open(in_folds.format([]))


def test_a_run_that_goes_on_is_no_longer_called_failed(tmp_path):
    folder = RunFolder(tmp_path / "run" / "0")
    text = config.dump(config.defaults())
    folder.open(text)
    (folder.path / FAILURE).write_text("error: out of memory (see 0.log)")  # as compare leaves it
    assert read_run(folder.path).state.startswith("failed: error: out of memory")
    folder.open(text)  # train, by hand
    assert read_run(folder.path).state == "unfinished, 0 of 200 epochs"


def test_a_key_that_came_later_was_at_its_default(tmp_path):
    folder = RunFolder(tmp_path / "run" / "0")
    folder.open(CONFIG)
    folder.last.touch()
    folder.open(f"{CONFIG}posenc_BPEARL:\n  plan: batch\n")
    with pytest.raises(UserError, match=r"posenc_BPEARL.plan = 'batch' instead of 'cached'"):
        folder.open(f"{CONFIG}posenc_BPEARL:\n  plan: cached\n")


def test_metrics_are_read_as_they_were_written_or_refused(tmp_path):
    folder = RunFolder(tmp_path)
    rows = [{"epoch": 0.0, "val_mae": 0.1}, {"epoch": 1.0}, {"epoch": 2.0, "val_mae": 1 / 3}]
    folder.write_metrics(["epoch", "val_mae"], rows)
    assert [(r["epoch"], r["val_mae"]) for r in folder.read_metrics()] == [
        ("0", "0.1"),
        ("1", ""),
        ("2", str(1 / 3)),
    ]
    whole = folder.metrics.read_bytes()
    for bit in range(len(whole) * 8):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        folder.metrics.write_bytes(damaged)
        with pytest.raises(DamagedFileError, match=r"metrics.csv.*damaged"):
            folder.read_metrics()


def test_bytes_that_are_no_text_are_one_line_where_there_is_no_checksum(tmp_path):
    folder = RunFolder(tmp_path)
    folder.metrics.write_bytes(b"epoch,val_mae\n0,\xff\xfe\n")
    with pytest.raises(DamagedFileError, match=r"metrics.csv.*byte 16.*UTF-8"):
        folder.read_metrics()


@pytest.mark.parametrize("text", ["{}", "[]", "null", "3", "{", '{"config": 1}', "[" * 100_000])
def test_a_result_that_is_none_is_not_a_finished_run(tmp_path, caplog, text):
    folder = RunFolder(tmp_path)
    folder.result.write_text(text)
    assert folder.read_result() is None
    assert len(caplog.records) == 1 and "result.json is damaged" in caplog.text


@pytest.mark.parametrize("name", ["config.yaml", "data.json", "result.json"])
def test_a_write_killed_between_checksum_and_file_leaves_the_old_file_valid(tmp_path, monkeypatch, name):
    folder = RunFolder(tmp_path)
    folder.write(tmp_path / name, "old")
    replace = Path.replace

    def killed(self, target):
        if Path(target).name == name:
            raise KeyboardInterrupt
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        folder.write(tmp_path / name, "new")
    assert folder.read(tmp_path / name) == "old"
    monkeypatch.undo()
    folder.write(tmp_path / name, "new")
    assert folder.read(tmp_path / name) == "new"


BOMB = "a: &a [1, 1]\n" + "".join(
    f"{x}: &{x} [{', '.join([f'*{y}'] * 50)}]\n" for y, x in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_an_alias_bomb_in_a_stored_config_is_one_line_and_takes_no_time(tmp_path, caplog):
    folder = RunFolder(tmp_path / "run" / "0")
    folder.open(CONFIG)
    folder.last.touch()
    (folder.path / "checksums.json").unlink()
    folder.config.write_text(BOMB)
    started = time.perf_counter()
    with pytest.raises(UserError, match=r"config.yaml.*anchors and aliases.*--overwrite"):
        folder.open(CONFIG)
    assert readable([folder.path]) == []
    assert "anchors and aliases" in caplog.text
    assert time.perf_counter() - started < 5


@pytest.mark.parametrize("scheduler", ["none", "step", "reduce_on_plateau"])
def test_more_epochs_are_accepted_where_the_schedule_does_not_depend_on_them(tmp_path, scheduler):
    text = CONFIG + f"optim: {{max_epoch: 3, scheduler: {scheduler}}}\n"
    folder = RunFolder(tmp_path / "run" / "0")
    folder.open(text)
    folder.last.touch()
    folder.result.write_text("{}")
    folder.open(text.replace("max_epoch: 3", "max_epoch: 5"))
    assert not folder.result.exists() and "max_epoch: 5" in folder.read(folder.config)
    with pytest.raises(UserError, match=r"max_epoch = 5 instead of 4"):
        folder.open(text.replace("max_epoch: 3", "max_epoch: 4"))
    with pytest.raises(UserError, match=r"gt.layers = 3 instead of 7"):
        folder.open(text.replace("max_epoch: 3", "max_epoch: 9").replace("layers: 3", "layers: 7"))


@pytest.mark.parametrize("scheduler", ["cos", "cosine_with_warmup", "linear_with_warmup"])
def test_more_epochs_are_refused_where_the_schedule_depends_on_them(tmp_path, scheduler):
    text = CONFIG + f"optim: {{max_epoch: 3, scheduler: {scheduler}}}\n"
    folder = RunFolder(tmp_path / "run" / "0")
    folder.open(text)
    folder.last.touch()
    with pytest.raises(UserError, match=rf"max_epoch = 3 instead of 5.*{scheduler}.*--overwrite"):
        folder.open(text.replace("max_epoch: 3", "max_epoch: 5"))


def test_a_file_that_is_written_while_it_is_read_is_not_damaged(tmp_path: Path, monkeypatch) -> None:
    folder, known = RunFolder(tmp_path), RunFolder._known_checksums
    folder.write(folder.metrics, "first")

    def written_meanwhile(self: RunFolder) -> dict[str, list[str]]:
        monkeypatch.setattr(RunFolder, "_known_checksums", known)
        for text in ("second", "third"):
            folder.write(folder.metrics, text)
        return known(self)

    monkeypatch.setattr(RunFolder, "_known_checksums", written_meanwhile)
    assert folder.read(folder.metrics) == "third"
    folder.metrics.write_text("changed by hand")
    with pytest.raises(DamagedFileError, match=r"metrics\.csv: is damaged"):
        folder.read(folder.metrics)


def test_a_run_whose_replacement_was_killed_before_it_began_comes_back(tmp_path: Path) -> None:
    path, text = tmp_path / "config" / "0", config.dump(config.defaults())
    RunFolder(path).open(text)
    RunFolder(path).write(path / "result.json", "the result of a long run")
    RunFolder(path).open(text, overwrite=True)
    assert not (path / "result.json").exists()
    RunFolder(path).open(text)  # the process was killed here, and this is the next
    RunFolder(path).forget_replaced()
    assert (path / "result.json").read_text() == "the result of a long run"
