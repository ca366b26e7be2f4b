"""scripts/attack.py: nothing wrong is used in silence, nothing ends in a traceback."""

import re
import subprocess
import sys
from pathlib import Path

import attack
import pytest
from attacks import lifetime

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "attack.py"


def counts(table: str) -> dict[str, list[int]]:
    """Kind -> tried, held, silent, traceback."""
    rows = re.findall(r"^\| (.+) \| ([\d,]+) \| ([\d,]+) \| (\d+) \| (\d+) \|$", table, re.MULTILINE)
    return {name: [int(number.replace(",", "")) for number in numbers] for name, *numbers in rows}


def test_a_short_attack_finds_nothing(capsys):
    words = "--only configs data flips --configs 60 --flips 8 --seed 1"
    code = attack.main(words.split())
    shown = capsys.readouterr()
    assert code == 0, shown.err
    found = counts(shown.out)
    assert len(found) > 12
    for name, (tried, held, silent, traceback) in found.items():
        assert tried == held >= 8 and silent == traceback == 0, name


def test_growth_is_told_from_the_first_rounds_and_from_noise():
    flat = [
        {"memory in MB": 100.0 + i % 2, "open files": 9, "threads": 2, "child processes": 1} for i in range(9)
    ]
    assert lifetime.grown([dict.fromkeys(flat[0], 0.0)] * 3 + flat) == {}
    leaking = [row | {"open files": 9.0 + i} for i, row in enumerate(flat)]
    assert lifetime.grown(leaking) == {"open files": pytest.approx(4)}


@pytest.mark.slow
def test_a_long_attack_finds_nothing():
    words = "--configs 10000 --flips 1000 --kills 200 --signals 60 --rounds 20 --seed 2"
    done = subprocess.run([sys.executable, SCRIPT, *words.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = counts(done.stdout)
    assert found["kill -9"][0] >= 200 and found["fuzzed configs"][0] >= 10_000
    assert all(tried == held for tried, held, _, _ in found.values())
