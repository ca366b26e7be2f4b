"""The benchmark runs, at toy size."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "benchmark.py"


@pytest.mark.parametrize("suite", ["pe", "gps", "plan", "scale"])
def test_every_suite(suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(SCRIPT.parent)])
    spec = importlib.util.spec_from_file_location("benchmark", SCRIPT)
    assert spec is not None and spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmark", benchmark)
    spec.loader.exec_module(benchmark)
    files = ["--json", str(tmp_path / "b.json"), "--plot", str(tmp_path / "b.png")]
    results = benchmark.main(["--toy", "--suite", suite, "--repeats", "1", "--no-memory", *files])
    assert results
    assert all(result.ours > 0 and result.baseline > 0 for result in results)
    assert len(json.loads((tmp_path / "b.json").read_text())["results"]) == len(results)
    assert (tmp_path / "b.png").stat().st_size > 1000
