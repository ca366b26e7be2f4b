"""A short soak: memory, files, threads and child processes stay flat over restarts, resumes, comparisons."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "soak.py"


@pytest.mark.slow
def test_two_minutes_of_restarts_leave_nothing_behind():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--minutes", "2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["rounds"] >= 6 and outcome["stops"] > 0
