"""Runs as processes: how each can end, and what is left of it."""

import os
import signal
import sys
import threading
import time
from dataclasses import dataclass

import pytest

from graphgps_pearl.experiments.jobs import Ending, Job, do, in_turn


@dataclass(frozen=True)
class Script(Job):
    """A job that runs a line of Python instead of a training."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.words[0]]


@pytest.fixture
def start(tmp_path):
    return lambda text, **settings: do(
        Script(tmp_path / "c.yaml", 3, (text,), tmp_path / "c" / "3"), **settings
    )


def test_a_failure_leaves_its_last_line_and_is_forgotten_when_it_is_mended(start, tmp_path):
    failed = start("print('on the way'); raise SystemExit('error: out of luck')")
    assert failed == Ending("failed", "error: out of luck")
    assert str(failed) == "failed, error: out of luck"
    note = tmp_path / "c" / "3" / "failed.txt"
    assert note.read_text() == f"error: out of luck (see {tmp_path / 'c' / '3.log'})\n"
    assert "on the way" in (tmp_path / "c" / "3.log").read_text()
    assert start("raise SystemExit(5)") == Ending("failed", "exit code 5")
    assert start("pass") == Ending("done")
    assert not note.exists()


@pytest.mark.parametrize(
    "code", ["raise SystemExit(143)", f"import os; os.kill(os.getpid(), {int(signal.SIGTERM)})"]
)
def test_an_interrupted_run_is_unfinished_and_not_failed(start, tmp_path, code):
    assert start(code).state == "interrupted"
    assert not (tmp_path / "c" / "3" / "failed.txt").exists()


def test_a_watch_stops_a_run_and_lets_it_save(start, tmp_path):
    saved = tmp_path / "saved"
    script = (
        "import signal, sys, time, pathlib\n"
        f"def save(*_): pathlib.Path({str(saved)!r}).touch(); sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        f"pathlib.Path({str(tmp_path / 'ready')!r}).touch()\n"
        "time.sleep(60)"
    )
    started = time.monotonic()
    ending = start(script, watch=lambda: "pruned: enough" if (tmp_path / "ready").exists() else None)
    assert ending == Ending("stopped", "pruned: enough")
    assert saved.exists()
    assert (tmp_path / "c" / "3" / "failed.txt").read_text() == "pruned: enough"
    assert time.monotonic() - started < 30


def test_runs_beside_each_other_have_one_thread_each(start, tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    start("import os; print(os.environ.get('OMP_NUM_THREADS'))", alone=False)
    assert (tmp_path / "c" / "3.log").read_text().strip() == "1"
    start("import os; print(os.environ.get('OMP_NUM_THREADS'))")
    assert (tmp_path / "c" / "3.log").read_text().strip() == "None"
    assert "OMP_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("at_once", [1, 2])
def test_results_come_in_order_and_nothing_is_begun_after_an_error(at_once):
    assert list(in_turn(lambda x: x * x, range(5), at_once)) == [0, 1, 4, 9, 16]
    begun, lock = [], threading.Lock()

    def work(x: int) -> int:
        with lock:
            begun.append(x)
        if x == 1:
            raise ValueError("no more")
        time.sleep(0.05)
        return x

    with pytest.raises(ValueError, match="no more"):
        list(in_turn(work, range(20), at_once))
    assert max(begun) <= 2
