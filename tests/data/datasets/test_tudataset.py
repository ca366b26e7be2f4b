from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_tu_data

from graphgps_pearl import data
from graphgps_pearl.errors import DataError


def write_tu(folder: Path, name: str, graphs: int, classes: int) -> None:
    """Random threads in the public text format, with a self-loop and a repeated edge in each."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    edges, owner, start = [], [], 1
    for graph in range(1, graphs + 1):
        nodes = int(rng.integers(3, 9))
        tree = [(int(rng.integers(0, i)), i) for i in range(1, nodes)]
        pairs = [*tree, tree[0], (1, 1)]
        edges += [(start + a, start + b) for a, b in pairs] + [(start + b, start + a) for a, b in tree]
        owner += [graph] * nodes
        start += nodes
    (folder / f"{name}_A.txt").write_text("".join(f"{a}, {b}\n" for a, b in edges))
    (folder / f"{name}_graph_indicator.txt").write_text("".join(f"{i}\n" for i in owner))
    labels = [1 + i % classes if classes > 2 else (-1) ** i for i in range(graphs)]
    (folder / f"{name}_graph_labels.txt").write_text("".join(f"{label}\n" for label in labels))


@pytest.mark.parametrize(("name", "classes"), [("REDDIT-BINARY", 2), ("REDDIT-MULTI-5K", 5)])
def test_the_graphs_are_those_of_pygs_own_reader(make_cfg, tmp_path: Path, name: str, classes: int) -> None:
    raw = tmp_path / "TUDataset" / name / "raw"
    write_tu(raw, name, 50, classes)
    cfg = make_cfg("PyG-TUDataset", name, path=tmp_path / "TUDataset", check_totals=False)
    cfg.dataset.task_type = "classification"
    theirs, slices, _ = read_tu_data(str(raw), name)
    expected = set()
    for i in range(50):
        cut = slice(int(slices["edge_index"][i]), int(slices["edge_index"][i + 1]))
        pairs = tuple(map(tuple, theirs.edge_index[:, cut].t().tolist()))
        expected.add((pairs, theirs._num_nodes[i], int(theirs.y[i])))
    found = set()
    for fold in range(10):
        cfg.dataset.split_index = fold
        bundle = data.load(cfg)
        assert bundle.spec.dim_out == classes
        assert {part: len(graphs) for part, graphs in bundle.splits.items()} == {
            "train": 40,
            "val": 5,
            "test": 5,
        }
        for graph in bundle.splits["test"]:
            found.add((tuple(map(tuple, graph.edge_index.t().tolist())), graph.num_nodes, int(graph.y)))
            assert torch.equal(graph.x, torch.ones(graph.num_nodes, 1))
    assert found == expected


def test_two_classes_as_one_logit(make_cfg, tmp_path: Path) -> None:
    write_tu(tmp_path / "raw", "REDDIT-BINARY", 20, 2)
    cfg = make_cfg("PyG-TUDataset", "REDDIT-BINARY", path=tmp_path, check_totals=False)
    cfg.dataset.task_type = "classification_binary"
    bundle = data.load(cfg)
    assert bundle.spec.dim_out == 1 and bundle.splits["train"].targets().shape == (16, 1)


def test_another_number_of_graphs_is_an_error(make_cfg, tmp_path: Path) -> None:
    write_tu(tmp_path / "raw", "REDDIT-MULTI-5K", 20, 5)
    cfg = make_cfg("PyG-TUDataset", "REDDIT-MULTI-5K", path=tmp_path)
    cfg.dataset.task_type = "classification"
    with pytest.raises(DataError, match="REDDIT-MULTI-5K: 20 graphs, the public dataset has 4,999"):
        data.load(cfg)


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("A", "1, x\n", r"_A\.txt: not whole numbers"),
        ("A", "1\n2\n3\n", r"_A\.txt: not two node numbers"),
        ("A", "1, 2, 3\n", r"_A\.txt: not two node numbers"),
        ("A", "1, 9999\n", r"_A\.txt: names nodes that .*graph_indicator\.txt does not have"),
        ("A", "1, 25\n25, 1\n", r"_A\.txt: has edges between different graphs"),
        ("graph_indicator", "2\n1\n", r"graph_indicator\.txt: graphs are not numbered"),
        ("graph_labels", "1\n", r"graph_labels\.txt: 1 labels for 20 graphs"),
    ],
)
def test_files_that_do_not_fit_are_said(make_cfg, tmp_path: Path, part: str, text: str, message: str) -> None:
    write_tu(tmp_path / "raw", "REDDIT-BINARY", 20, 2)
    (tmp_path / "raw" / f"REDDIT-BINARY_{part}.txt").write_text(text)
    cfg = make_cfg("PyG-TUDataset", "REDDIT-BINARY", path=tmp_path, check_totals=False)
    cfg.dataset.task_type = "classification"
    with pytest.raises(DataError, match=message):
        data.load(cfg)
