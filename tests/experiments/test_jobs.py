"""Runs as processes: how each can end, and what is left of it."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphgps_pearl.experiments.jobs import Ending, Job, run_jobs
from graphgps_pearl.runs.folder import RunFolder


@dataclass(frozen=True)
class Script(Job):
    """A job that runs a line of Python instead of a training."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.overrides[0]]


@pytest.fixture
def start(tmp_path):
    def one(text: str, at_once: int = 1, **settings) -> Ending:
        endings = []
        job = Script(tmp_path / "c.yaml", 3, (text,), tmp_path / "c" / "3")
        run_jobs([job], at_once, lambda _, ending: endings.append(ending), **settings)
        return endings[0]

    return one


def test_a_failure_leaves_its_last_line_and_is_forgotten_when_a_retry_works(start, tmp_path):
    failed = start("print('before'); raise SystemExit('error: out of luck')")
    assert failed == Ending("failed", "error: out of luck")
    assert str(failed) == "failed, error: out of luck"
    note = tmp_path / "c" / "3" / "failed.txt"
    assert note.read_text() == f"error: out of luck (see {tmp_path / 'c' / '3.log'})\n"
    assert start("raise SystemExit(5)") == Ending("failed", "exit code 5")
    assert start("pass") == Ending("done")
    assert not note.exists()


def test_a_failure_of_folds_is_noted_at_the_fold_that_is_not_finished(tmp_path):
    for fold in (0, 1):
        (tmp_path / "c" / str(fold)).mkdir(parents=True)
    (tmp_path / "c" / "0" / "result.json").write_text("{}")
    for text, left in (("raise SystemExit('error: out of luck')", ["1"]), ("pass", [])):
        job = Script(tmp_path / "c.yaml", 0, (text,), tmp_path / "c" / "0", folds=(0, 1, 2))
        run_jobs([job], 1, lambda *_: None)
        assert [note.parent.name for note in (tmp_path / "c").glob("*/failed.txt")] == left


def test_every_start_has_a_log_of_its_own(start, tmp_path):
    for text in ("one", "two", "three"):
        start(f"print({text!r})")
    names = ("3.log", "3.2.log", "3.3.log")
    assert [(tmp_path / "c" / name).read_text() for name in names] == ["one\n", "two\n", "three\n"]


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit(143)",
        "raise SystemExit(129)",
        f"import os; os.kill(os.getpid(), {int(signal.SIGTERM)})",
        f"import os; os.kill(os.getpid(), {int(signal.SIGHUP)})",
    ],
)
def test_an_interrupted_run_is_unfinished_and_not_failed(start, tmp_path, code):
    assert start(code).state == "interrupted"
    assert not (tmp_path / "c" / "3" / "failed.txt").exists()


def test_a_watch_stops_a_run_and_lets_it_save(start, tmp_path):
    script = SAVING.format(folder=str(tmp_path))
    started = time.monotonic()
    ending = start(script, watch=lambda _: "pruned: enough" if (tmp_path / "ready").exists() else None)
    assert ending == Ending("stopped", "pruned: enough")
    assert (tmp_path / "saved").exists()
    assert (tmp_path / "c" / "3" / "failed.txt").read_text() == "pruned: enough"
    assert time.monotonic() - started < 30


def test_runs_at_the_same_time_have_one_thread_each(start, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    start("import os; print(os.environ.get('OMP_NUM_THREADS'))", at_once=2)
    assert (tmp_path / "c" / "3.log").read_text().strip() == "1"
    start("import os; print(os.environ.get('OMP_NUM_THREADS'))")
    assert (tmp_path / "c" / "3.2.log").read_text().strip() == "None"
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("at_once", [1, 2])
def test_nothing_is_begun_after_an_error_and_what_runs_is_ended(tmp_path, at_once):
    begun = []

    def jobs():
        for seed in range(20):
            begun.append(seed)
            text = "pass" if seed == 0 else "import time; time.sleep(60)"
            yield Script(tmp_path / "c.yaml", seed, (text,), tmp_path / "c" / str(seed))

    def ended(job: Job, _: Ending) -> None:
        raise ValueError("no more")

    started = time.monotonic()
    with pytest.raises(ValueError, match="no more"):
        run_jobs(jobs(), at_once, ended)
    assert len(begun) == at_once
    assert time.monotonic() - started < 30


def test_a_run_that_is_still_being_saved_is_waited_for(start, tmp_path):
    folder = RunFolder(tmp_path / "c" / "3")
    folder.path.mkdir(parents=True)
    holder = "import sys, time\nfrom pathlib import Path\nfrom graphgps_pearl.runs.folder import RunFolder\n"
    holder += f"with RunFolder(Path({str(folder.path)!r})).locked():\n print(flush=True); time.sleep(2)"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    former = subprocess.Popen([sys.executable, "-c", holder], env=environment, stdout=subprocess.PIPE)
    assert former.stdout is not None
    former.stdout.readline()
    assert start("pass") == Ending("done")
    assert former.poll() is not None


SAVING = """
import pathlib, signal, sys, time
from graphgps_pearl.processes import end_with_parent
folder = pathlib.Path({folder!r})
def save(*_):
    (folder / "saved").touch()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
end_with_parent()
(folder / "ready").touch()
time.sleep(60)
"""
PARENT = """
import pathlib, sys
sys.path[:0] = [{tests!r}]
from test_jobs import Script
from graphgps_pearl.command import run_command
from graphgps_pearl.experiments.jobs import run_jobs
folder = pathlib.Path({folder!r})
job = Script(folder / "c.yaml", 0, ({script!r},), folder / "c" / "0")
sys.exit(run_command(lambda: run_jobs([job], 1, lambda *_: None)))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_runs_save_and_end_with_the_process_that_started_them(tmp_path, number):
    script = SAVING.format(folder=str(tmp_path))
    parent = PARENT.format(tests=str(Path(__file__).parent), folder=str(tmp_path), script=script)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", parent], env=environment)
    wait_for(tmp_path / "ready")
    process.send_signal(number)
    expected = -number if number == signal.SIGKILL else 128 + number
    assert process.wait(300) == expected
    wait_for(tmp_path / "saved")


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 300  # on a busy machine
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} does not appear"
        time.sleep(0.02)
