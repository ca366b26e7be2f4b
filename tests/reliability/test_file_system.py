"""A folder that is removed, renamed, read-only or full: one line, and what was saved stays."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.small_runs import CONFIG, assert_same_run, checkpoint

from graphgps_pearl import cli
from graphgps_pearl.training.task import GraphTask


@contextlib.contextmanager
def mounted(target: Path, *options: str) -> Iterator[None]:
    """A mount at ``target`` while it lasts; skips where it is not permitted."""
    done = subprocess.run(["mount", *options, str(target)], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("mounting needs root")
    try:
        yield
    finally:
        subprocess.run(["umount", str(target)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """The folder as it is, through a mount that cannot be written."""
    with mounted(folder, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield


def error_line(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.strip().splitlines()
    assert "Traceback" not in "".join(lines)
    return lines[-1]


@pytest.fixture
def at_step(monkeypatch):
    """Do something once, in the given training step."""

    def at(step, action):
        original, count = GraphTask.training_step, [0]

        def counted(self, batch, batch_idx):
            count[0] += 1
            if count[0] == step:
                action()
            return original(self, batch, batch_idx)

        patch = pytest.MonkeyPatch()
        patch.setattr(GraphTask, "training_step", counted)
        return patch

    patches = []
    yield lambda step, action: patches.append(at(step, action))
    for patch in patches:
        patch.undo()


def test_the_folder_is_removed_during_training(runs, at_step, capsys):
    at_step(6, lambda: shutil.rmtree(runs.path()))
    assert runs.train() == 2
    line = error_line(capsys)
    assert line.startswith(f"error: {runs.path()}") and "removed or renamed" in line


def test_the_folder_is_renamed_during_training_and_put_back(runs, finished, at_step, capsys):
    elsewhere = runs.path().with_name("elsewhere")
    at_step(6, lambda: runs.path().rename(elsewhere))
    assert runs.train() == 2
    assert "removed or renamed" in error_line(capsys)
    elsewhere.rename(runs.path())
    assert checkpoint(runs.path())["position"] == {"epoch": 1, "batches": 0}
    assert runs.train() == 0
    assert_same_run(runs.path(), finished)


def test_the_folder_becomes_read_only_during_training(runs, finished, at_step, capsys):
    with contextlib.ExitStack() as mounts:
        at_step(6, lambda: mounts.enter_context(read_only(runs.path())))
        assert runs.train() == 2
        line = error_line(capsys)
        assert str(runs.path()) in line and "read-only" in line and "the same command continues" in line
    assert runs.train() == 0
    assert_same_run(runs.path(), finished)


def test_out_dir_cannot_be_written_from_the_start(runs, tmp_path, capsys):
    folder = runs.path().parent
    folder.mkdir(parents=True)
    with read_only(folder):
        assert runs.train() == 2
    assert "read-only" in error_line(capsys).lower()


@pytest.fixture(scope="module")
def results(tmp_path_factory, dataset_dir):
    """A folder with two finished runs, as the command line leaves it, and the words that made it."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "small.yaml").write_text(CONFIG)
    words = ["--cfg", str(folder / "small.yaml"), "out_dir", str(folder / "out"), "optim.max_epoch", "1"]
    words += ["dataset.dir", str(dataset_dir)]
    assert cli.train([*words, "--repeat", "2"]) == 0
    return folder / "out", words


def test_finished_runs_are_shown_and_compared_from_a_read_only_folder(results, capsys):
    out_dir, words = results
    with read_only(out_dir):
        assert cli.train([*words, "--repeat", "2"]) == 0
        shown = capsys.readouterr()
        assert "2 runs of small" in shown.out and "Traceback" not in shown.err
        assert cli.main(["report", str(out_dir)]) == 0
        shown = capsys.readouterr()
        assert "small" in shown.out and "Traceback" not in shown.err


def test_report_and_export_on_a_full_disk_are_one_line(results, tmp_path, capsys):
    out_dir, _ = results
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=1m", "tmpfs"):
        shutil.copytree(
            out_dir / "small", disk / "small", ignore=shutil.ignore_patterns("events.*", "*.ckpt")
        )
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        (disk / "filling").write_bytes(bytes(free))
        capsys.readouterr()
        assert cli.main(["report", str(disk)]) == 2
        line = error_line(capsys)
        assert line.startswith("error: ") and "no space left" in line
        assert cli.main(["export", str(out_dir / "small" / "0"), "-o", str(disk / "model")]) == 2
        line = error_line(capsys)
        assert line.startswith("error: ") and "No space left" in line
    with read_only(disk):
        assert cli.main(["export", str(out_dir / "small" / "0"), "-o", str(disk / "model")]) == 2
        assert "read-only" in error_line(capsys).lower()
