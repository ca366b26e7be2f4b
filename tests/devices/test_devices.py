"""Runs the cases of ``on_fake_gpu.py`` in a process of their own: a device stays registered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CASES = Path(__file__).with_name("on_fake_gpu.py")
SCRIPT = CASES.parents[2] / "scripts" / "gpu_check.py"


def test_the_check_for_users_runs_also_on_a_cpu() -> None:
    command = [sys.executable, str(SCRIPT), "--device", "cpu", "--config", "zinc-none:2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    row = [cell.strip() for cell in done.stdout.splitlines()[-1].strip("|").split("|")]
    assert row[0] == "zinc-none:2" and float(row[3]) > 0 and float(row[5]) == 0


def run_cases(which: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", which, str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CASES.parents[2])
    assert done.returncode == 0, done.stdout[-5000:]


def test_cases_on_a_pretend_gpu() -> None:
    run_cases("not lost")


@pytest.mark.slow
def test_lost_transfers_on_a_pretend_gpu() -> None:
    run_cases("lost")
