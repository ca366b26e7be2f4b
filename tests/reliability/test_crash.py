"""kill -9 at any moment, damaged files, a full disk: what was saved stays loadable and the run goes on."""

import random
import resource
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from helpers import children
from helpers.small_runs import SmallRuns, assert_same_run, checkpoint, numbers

from graphgps_pearl.runs.checkpoints import find_checkpoint
from graphgps_pearl.runs.folder import RunFolder

EVERY_BATCH = ("train.ckpt_every_batches", "1")


def position(runs: SmallRuns) -> tuple[int, int]:
    found = find_checkpoint(RunFolder(runs.path()))
    return (0, 0) if found is None else (found.epoch, found.batches)


def test_killed_in_every_stage_of_a_save(runs, tmp_path):
    """Killed at the 1st, 2nd, 3rd, ... file operation of one start after another, until one gets through."""
    survive_kills_in_saves(runs, tmp_path / "output", 3, range(1, 200, 13))


@pytest.mark.slow
def test_killed_at_each_single_file_operation(runs, tmp_path):
    assert survive_kills_in_saves(runs, tmp_path / "output", 8, range(1, 200)) >= 30


def survive_kills_in_saves(runs: SmallRuns, output: Path, epochs: int, operations) -> int:
    words = ("optim.max_epoch", str(epochs))
    runs.train(*words, tag="whole")
    kills = 0
    for operation in operations:
        was = position(runs)
        child = children.start(
            runs.arguments(*words, *EVERY_BATCH), output, children.kill_at_operation, operation
        )
        child.join(120)
        code = child.exitcode
        assert position(runs) >= was  # nothing that was saved is lost
        if code == 0:
            break
        assert code == -9, output.read_text()
        kills += 1
    assert code == 0 and kills >= 3
    assert_same_run(runs.path(), runs.path("whole"))
    assert not [p.name for p in runs.path().glob(".*")], "temporary files are left"
    return kills


def test_killed_at_random_moments(runs, tmp_path):
    survive_random_kills(runs, tmp_path / "output", 3)


@pytest.mark.slow
def test_killed_at_many_random_moments(runs, tmp_path):
    survive_random_kills(runs, tmp_path / "output", 50)


def survive_random_kills(runs: SmallRuns, output: Path, count: int) -> None:
    words = ("optim.max_epoch", "10")
    started = time.perf_counter()
    runs.train(*words, tag="whole")
    duration = time.perf_counter() - started
    rng = random.Random(1)
    kills = 0
    while kills < count:
        was = position(runs)
        child = children.start(runs.arguments(*words, *EVERY_BATCH), output)
        child.join(rng.uniform(0, duration))
        if child.is_alive():
            child.kill()
            kills += 1
        child.join(60)
        assert child.exitcode in (0, -9), output.read_text()
        assert position(runs) >= was
    assert runs.train(*words) == 0
    assert_same_run(runs.path(), runs.path("whole"))


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "foreign"])
def test_a_damaged_checkpoint_falls_back_in_one_line(runs, finished, caplog, damage):
    shutil.copytree(finished, runs.path())
    last = runs.path() / "last.ckpt"
    (runs.path() / "result.json").unlink()
    content = bytearray(last.read_bytes())
    middle = len(content) // 2
    content[middle] ^= 0xFF  # inside a tensor: the file still unpickles
    damaged = {
        "truncated": content[:middle],
        "empty": b"",
        "flipped": content,
        "foreign": b"PK not a checkpoint",
    }
    last.write_bytes(damaged[damage])
    caplog.clear()
    assert runs.train() == 0
    warned = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warned) == 1 and "last.ckpt cannot be read" in warned[0]
    assert (runs.path() / "last.damaged").read_bytes() == damaged[damage]  # not in the good one's place
    assert checkpoint(runs.path(), "previous.ckpt")["position"] == {"epoch": 2, "batches": 0}
    assert_same_run(runs.path(), finished)


def test_when_no_checkpoint_can_be_read_nothing_is_begun_again(runs, finished, capsys):
    shutil.copytree(finished, runs.path())
    (runs.path() / "result.json").unlink()
    for name in ("last.ckpt", "previous.ckpt"):
        (runs.path() / name).write_bytes(b"rubbish")
    before = numbers(runs.path())
    assert runs.train() == 2
    assert "no checkpoint can be read" in capsys.readouterr().err.strip().splitlines()[-1]
    assert numbers(runs.path()) == before


def limit_file_size(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_file_that_grows_too_large_stops_the_run_and_leaves_earlier_files_whole(runs, finished, tmp_path):
    size = (finished / "best.ckpt").stat().st_size
    output = tmp_path / "output"
    child = children.start(runs.arguments(), output, children.kill_at_operation, 60)  # an epoch or two
    child.join(120)
    was = position(runs)
    assert was > (0, 0)
    child = children.start(runs.arguments(), output, limit_file_size, size // 2)
    child.join(120)
    assert child.exitcode == 2
    line = output.read_text().strip().splitlines()[-1]
    assert line.startswith("error: ") and "file too large" in line and "the same command continues" in line
    assert position(runs) == was
    assert runs.train() == 0
    assert_same_run(runs.path(), finished)


def test_a_full_disk_stops_the_run_and_leaves_earlier_files_whole(tmp_path, dataset_dir, capsys):
    disk = tmp_path / "disk"
    disk.mkdir()
    runs = SmallRuns(disk, dataset_dir)
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        stages = set()
        for left in (4, 60, 220):  # kB: the disk is full sooner or later
            filling = disk / "filling"
            filling.write_bytes(bytes(1024 * (590 - left)))
            code = runs.train("optim.max_epoch", "2")
            error = capsys.readouterr().err.strip().splitlines()[-1:]
            assert code == 0 or (code == 2 and "no space left on device" in error[0]), (left, error)
            folder = RunFolder(runs.path())
            assert find_checkpoint(folder) is not None or not folder.last.exists()
            stages.add((code, position(runs)))
            filling.unlink()
            assert runs.train("optim.max_epoch", "2") == 0
            shutil.rmtree(disk / "results")
        assert (2, (0, 0)) in stages and (2, (1, 0)) in stages, stages
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_two_processes_do_not_train_one_run(runs, tmp_path):
    output = tmp_path / "output"
    with RunFolder(runs.path()).locked():
        child = children.start(runs.arguments(), output)
        child.join(60)
    assert child.exitcode == 2
    assert "being trained by another process" in output.read_text()
    assert not (runs.path() / "config.yaml").exists()


def test_an_unreadable_record_of_the_config_is_not_overwritten(runs, finished, capsys):
    shutil.copytree(finished, runs.path())
    (runs.path() / "config.yaml").write_text("{[")
    assert runs.train() == 2
    assert "config.yaml cannot be read" in capsys.readouterr().err
    assert checkpoint(runs.path())["position"] == {"epoch": 3, "batches": 0}
