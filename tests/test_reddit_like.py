"""Data in REDDIT's format with its sizes: read by the real reader, the same for one seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import reddit_like

from graphgps_pearl import config, data


@pytest.mark.parametrize("name", reddit_like.FACTS)
def test_sizes_and_format(tmp_path: Path, name: str) -> None:
    reddit_like.make(tmp_path / "a", name, 60, seed=1)
    short = "reddit-b-none" if name == "REDDIT-BINARY" else "reddit-m-none"
    words = ["dataset.path", str(tmp_path / "a"), "dataset.dir", str(tmp_path), "dataset.check_totals", False]
    bundle = data.load(config.load(config.find(short), words))
    graphs = [graph for split in bundle.splits.values() for graph in split]
    nodes = np.array([graph.num_nodes for graph in graphs])
    edges = np.array([graph.num_edges / 2 for graph in graphs])
    _, classes, median, mean, fewest, most, density = reddit_like.FACTS[name]
    assert len(graphs) == 60 and nodes.max() == most and nodes.min() >= fewest
    assert np.median(nodes) == pytest.approx(median, rel=0.35)
    assert nodes.mean() == pytest.approx(mean, rel=0.35)
    assert edges.sum() / nodes.sum() == pytest.approx(density, rel=0.03)
    assert all(graph.is_undirected() and not graph.has_self_loops() for graph in graphs)
    assert len({int(graph.y) for graph in graphs}) == classes
    hubs = [int(np.bincount(graph.edge_index[0]).max()) for graph in graphs]
    assert max(hubs) > 1000


def test_one_seed_gives_one_dataset(tmp_path: Path) -> None:
    texts = []
    for folder, seed in (("a", 0), ("b", 0), ("c", 1)):
        reddit_like.make(tmp_path / folder, "REDDIT-BINARY", 3, seed)
        texts.append((tmp_path / folder / "REDDIT-BINARY_A.txt").read_text())
    assert texts[0] == texts[1] != texts[2]
