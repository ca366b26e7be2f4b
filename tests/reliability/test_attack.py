"""scripts/attack.py: nothing wrong is used in silence, nothing ends in a traceback."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "attack.py"


def attack(*words: str) -> dict[str, list[int]]:
    """Kind -> tried, held, silent, traceback."""
    done = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \| ([\d,]+) \| (\d+) \| (\d+) \|$", done.stdout, re.MULTILINE)
    return {name: [int(number.replace(",", "")) for number in numbers] for name, *numbers in rows}


def test_a_short_attack_finds_nothing():
    counts = ("--configs", "60", "--flips", "8", "--seed", "1")
    found = attack("--only", "configs", "data", "flips", *counts)
    assert len(found) > 12
    for name, (tried, held, silent, traceback) in found.items():
        assert tried == held >= 8 and silent == traceback == 0, name


@pytest.mark.slow
def test_a_long_attack_finds_nothing():
    found = attack(
        "--configs", "10000", "--flips", "1000", "--kills", "200", "--signals", "60", "--seed", "2"
    )
    assert found["kill -9"][0] >= 200 and found["fuzzed configs"][0] >= 10_000
    assert all(tried == held for tried, held, _, _ in found.values())
