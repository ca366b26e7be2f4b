"""Counting cycles with scripts/reproduce_cycles.py: right labels, and B-PEARL learns them."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
import torch
from torch_geometric.utils import to_dense_adj


@pytest.fixture
def cycles(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend("scripts")
    return importlib.import_module("reproduce_cycles")


@pytest.mark.parametrize("kind", ["regular4", "regular3", "random"])
def test_labels_are_the_closed_forms(cycles: ModuleType, kind: str) -> None:
    graph = cycles.make_graph(kind, 20, seed=1)
    A = to_dense_adj(graph.edge_index, max_num_nodes=20)[0]
    degree, square = A.sum(1), A @ A
    torch.testing.assert_close(graph.y[:, 0], (square @ A).diag() / 2)
    four = ((square @ square).diag() - degree.square() - A @ degree + degree) / 2
    torch.testing.assert_close(graph.y[:, 1], four)
    assert graph.rwse.shape == (20, 16)
    torch.testing.assert_close(graph.rwse[:, 1], (A @ (1 / degree.clamp(min=1))) / degree.clamp(min=1))


@pytest.mark.slow
def test_bpearl_counts_cycles_of_three_to_seven_nodes(cycles: ModuleType) -> None:
    """One linear map behind the plain sum; without an encoding regular graphs look all alike."""
    arguments = ["--steps", "200", "--train", "300", "--networks"]
    found = cycles.main(["--encoders", "bpearl", *arguments, "linear"])
    assert float(found["bpearl", "linear"].min()) > 0.9
    found = cycles.main(["--encoders", "none", *arguments, "gin"])
    assert float(found["none", "gin"].max()) < 0.1
