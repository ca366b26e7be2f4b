"""Something is on the screen before the heavy imports begin."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIG = str(REPOSITORY / "configs" / "quickstart.yaml")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["train", "--cfg", CONFIG, "--repeat", "3"], "quickstart: 3 run(s), results in "),
        (
            ["compare", "--base", CONFIG, "--encoders", "none", "BPEARL"],
            "none: with the settings of quickstart\nBPEARL: with",
        ),
        (["compare", CONFIG], "checking 1 config(s), then 1 run(s)"),
    ],
)
def test_the_first_line_comes_before_torch(tmp_path, words, line):
    (tmp_path / "torch.py").write_text("raise SystemExit('torch is imported')\n")
    done = subprocess.run(
        [sys.executable, "-m", "graphgps_pearl", *words, "out_dir", str(tmp_path / "results")],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{REPOSITORY}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith(line)
    assert "torch is imported" in done.stderr
