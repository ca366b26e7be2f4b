"""The benchmark runs, at toy size."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "benchmark.py"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [*sys.path, str(SCRIPT.parent)])
    spec = importlib.util.spec_from_file_location("benchmark", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "benchmark", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("suite", ["pe", "gps", "epoch", "scale", "cost"])
def test_every_suite(
    suite: str, benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    monkeypatch.setattr("torch.set_num_threads", counts.append)  # real threads wait for cores that are busy
    files = ["--json", str(tmp_path / "b.json"), "--plot", str(tmp_path / "b.png")]
    threads = ["--threads", "1", "2"]
    results = benchmark.main(["--toy", "--suite", suite, "--repeats", "1", "--no-memory", *threads, *files])
    assert all(result.ours > 0 and result.baseline > 0 for result in results)
    assert counts == [1, 1, 2]
    cases = [[r.case for r in results if r.threads == count] for count in (1, 2)]
    assert cases[0] and cases[0] == cases[1]
    written = json.loads((tmp_path / "b.json").read_text())["results"]
    assert [w["threads"] for w in written] == [r.threads for r in results]
    assert (tmp_path / "b.png").stat().st_size > 1000


def test_every_encoding_has_its_curve(
    benchmark: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("matplotlib.pyplot.close", drawn.append)
    names = [f"encoding {i}" for i in range(len(benchmark.COLOURS) + 1)]
    curves = [benchmark.Curve("chain", "R-PEARL", name, 100) for name in names]
    results = [benchmark.Result("scale", "", 1, 1.0, 1.0, 1.0, (1.0, 1.0), curve=curve) for curve in curves]
    benchmark.plot_curves(results, tmp_path / "curves.png")
    legend = drawn[0].axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["R-PEARL", *names]


def test_error_against_time(benchmark: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--toy", "--suite", "samples", "--threads", "1"]) == []
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("zinc-rpearl")]
    errors = [[float(part.split()[1]) for part in line.split("M = ")[1:]] for line in lines]
    assert len(errors) == 6 and all(few > many > 0 for few, many in errors)


def test_a_case_that_lost_speed_fails_the_comparison(
    benchmark: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def result(case: str, ratio: float) -> object:
        return benchmark.Result("gps", case, 1, 1.0, ratio, ratio, (ratio, ratio))

    earlier = [{"case": "zinc", "threads": 1, "ratio": 2.0}, {"case": "gone", "threads": 1, "ratio": 1.0}]
    same = benchmark.changes(earlier, [result("zinc", 1.96), result("new", 1.0)])
    assert same == [("zinc", 1, pytest.approx(0.98))]
    assert benchmark.show_changes(same)
    assert not benchmark.show_changes(benchmark.changes(earlier, [result("zinc", 1.9)]))
    assert "zinc" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("inverse", [True, False])
def test_lanczos_finds_the_smallest(inverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from baselines import eigenvectors
    from baselines.padded_pearl import sym_laplacian

    def chain(n: int) -> torch.Tensor:
        one_way = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
        return torch.cat([one_way, one_way.flip(0)], dim=1)

    graphs = [(chain(n), n) for n in (5, 8, 9, 40)]
    every = eigenvectors.dense(graphs)()
    some = eigenvectors.lanczos(graphs, inverse)()
    assert [v.shape[1] for v in some] == [5, 8, 8, 8]
    for graph, all_, few in zip(graphs, every, some, strict=True):
        laplacian = sym_laplacian(*graph)
        values = [((laplacian @ v) * v).sum(0).sort().values for v in (all_, torch.tensor(few).float())]
        torch.testing.assert_close(values[1], values[0][: few.shape[1]], rtol=0, atol=1e-3)
