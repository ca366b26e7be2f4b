from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from graphgps_pearl import data
from graphgps_pearl.data.datasets.csl import SKIPS, circular_skip_link


def spectrum(edge_index: torch.Tensor) -> np.ndarray:
    adjacency = torch.zeros(41, 41, dtype=torch.double)
    adjacency[edge_index[0], edge_index[1]] = 1
    assert torch.equal(adjacency, adjacency.t()) and bool((adjacency.sum(0) == 4).all())
    return torch.linalg.eigvalsh(adjacency).numpy()


@pytest.fixture
def bundle(make_cfg):
    cfg = make_cfg("PyG-GNNBenchmarkDataset", "CSL")
    cfg.dataset.task_type = "classification"
    return data.load(cfg)


def test_150_regular_graphs_in_10_classes_of_15(bundle) -> None:
    graphs = [graph for part in bundle.splits.values() for graph in part]
    assert Counter(int(graph.y) for graph in graphs) == dict.fromkeys(range(10), 15)
    for graph in graphs:
        expected = spectrum(circular_skip_link(SKIPS[int(graph.y)]))
        assert np.allclose(spectrum(graph.edge_index), expected)
    assert graphs[0].x.shape == (41, 1) and graphs[0].edge_attr is None


def test_classes_are_different_graphs() -> None:
    spectra = [spectrum(circular_skip_link(skip)) for skip in SKIPS]
    for i, left in enumerate(spectra):
        assert all(not np.allclose(left, right) for right in spectra[i + 1 :])


def test_the_construction_is_the_circulant_graph() -> None:
    ours = nx.Graph(circular_skip_link(5).t().tolist())
    assert nx.utils.edges_equal(ours.edges, nx.circulant_graph(41, [1, 5]).edges)


def test_five_stratified_folds(make_cfg, bundle) -> None:
    assert bundle.spec.dim_out == 10
    tested: list[tuple] = []
    for fold in range(5):
        cfg = make_cfg("PyG-GNNBenchmarkDataset", "CSL", split_index=fold)
        cfg.dataset.task_type = "classification"
        parts = data.load(cfg).splits
        assert {name: len(part) for name, part in parts.items()} == {"train": 90, "val": 30, "test": 30}
        assert set(Counter(parts["test"].targets().tolist()).values()) == {3}
        tested += [tuple(graph.edge_index.flatten().tolist()) for graph in parts["test"]]
    assert len(set(tested)) == 150


@pytest.mark.realdata
def test_the_published_graphs_are_ours_relabelled(shared_data: Path) -> None:
    held = np.load(shared_data / "csl" / "csl.npz")
    ends = np.cumsum(held["num_edges"], dtype=np.int64)
    for i in range(150):
        edges = slice(ends[i] - 164, ends[i])
        edge_index = torch.from_numpy(np.stack([held["src"][edges], held["dst"][edges]]).astype(np.int64))
        expected = spectrum(circular_skip_link(SKIPS[int(held["y"][i])]))
        assert np.allclose(spectrum(edge_index), expected)
