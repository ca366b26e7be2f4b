"""Runs the cases of ``on_fake_gpu.py`` in a process of their own: a device stays registered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CASES = Path(__file__).with_name("on_fake_gpu.py")


def test_cases_on_a_pretend_gpu() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(CASES)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CASES.parents[2])
    assert done.returncode == 0, done.stdout[-5000:]
    assert "failed" not in done.stdout
