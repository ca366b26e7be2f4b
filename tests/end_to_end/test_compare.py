"""A comparison of encoders, killed half-way and continued, as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ENCODERS = ("none", "RWSE", "LapPE", "SignNet", "BPEARL")
WORDS = ["dataset.subset", "100", "optim.max_epoch", "2", "gt.layers", "1", "posenc_BPEARL.num_layers", "2"]


@pytest.mark.slow
def test_five_encoders_killed_and_continued(tmp_path):
    command = [sys.executable, "-m", "graphgps_pearl", "compare"]
    command += ["--base", str(REPOSITORY / "configs" / "quickstart.yaml")]
    command += ["--encoders", *ENCODERS, "--baseline", "quickstart-none"]
    command += [*WORDS, "out_dir", str(tmp_path / "results"), "dataset.dir", str(tmp_path / "data")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment, start_new_session=True)
    deadline = time.monotonic() + 900  # on a busy machine
    while len(list((tmp_path / "results").glob("*/*/result.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = {p: p.stat().st_mtime_ns for p in (tmp_path / "results").glob("*/*/result.json")}
    assert 2 <= len(finished) < 5

    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=True
    )
    assert "test mae: quickstart-" in done.stdout
    assert {p: p.stat().st_mtime_ns for p in finished} == finished  # what was finished was left alone
    (table,) = json.loads((tmp_path / "results" / "report.json").read_text())["groups"]
    assert [line["name"] for line in table["lines"]] == [f"quickstart-{e}" for e in ENCODERS]
    assert table["notes"] == []
    for line in table["lines"]:
        result = json.loads((tmp_path / "results" / line["name"] / "0" / "result.json").read_text())
        assert line["by_seed"]["0"] == result["best"]["test_mae"]
