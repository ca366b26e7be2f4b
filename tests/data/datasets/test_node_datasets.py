"""Datasets of node classes, read from small files of the public formats and compared with PyG's own
readers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.public_files import SPLITS, write_geom_gcn, write_gnn_benchmark, write_planetoid
from torch_geometric.datasets import Actor, GNNBenchmarkDataset, WebKB
from torch_geometric.io import read_planetoid_data

from graphgps_pearl import data
from graphgps_pearl.errors import ConfigError, DataError


def node_cfg(make_cfg, *names: str, **settings):
    settings = {"task": "node", "task_type": "classification", "check_totals": False, **settings}
    return make_cfg(*names, **settings)


@pytest.mark.parametrize("name", ["PATTERN", "CLUSTER", "MNIST", "CIFAR10"])
def test_benchmark_graphs_are_those_of_pygs_own_reader(make_cfg, tmp_path: Path, name: str) -> None:
    write_gnn_benchmark(tmp_path, name)
    task = "node" if name in ("PATTERN", "CLUSTER") else "graph"
    cfg = node_cfg(make_cfg, "PyG-GNNBenchmarkDataset", name, path=tmp_path, task=task)
    bundle = data.load(cfg)
    assert bundle.spec.task == task
    for split in SPLITS:
        theirs = GNNBenchmarkDataset(str(tmp_path), name, split=split)
        assert len(bundle.splits[split]) == len(theirs)
        for ours, other in zip(bundle.splits[split], theirs, strict=True):
            assert torch.equal(ours.edge_index, other.edge_index)
            assert torch.equal(ours.y.flatten().long(), other.y)
            x = other.x if task == "node" else torch.cat((other.x, other.pos), dim=1)
            assert torch.equal(ours.x, x) and ours.x.size(1) == bundle.spec.dim_in
            if task == "graph":
                assert torch.equal(ours.edge_attr.flatten(), other.edge_attr)


def test_pattern_has_one_logit_however_its_two_classes_are_called(make_cfg) -> None:
    for task_type in ("classification", "classification_binary"):
        spec = data.spec(node_cfg(make_cfg, "PyG-GNNBenchmarkDataset", "PATTERN", task_type=task_type))
        assert (spec.task_type, spec.dim_out) == ("classification_binary", 1)


def test_graphgps_calls_it_a_graph_task_with_another_head(make_cfg) -> None:
    cfg = node_cfg(make_cfg, "PyG-GNNBenchmarkDataset", "CLUSTER", task="graph")
    with pytest.raises(ConfigError, match=r"dataset.task: 'graph' .*CLUSTER; set it to node"):
        data.spec(cfg)
    cfg.gnn.head = "inductive_node"
    assert data.spec(cfg).task == "node"


def test_geom_gcn_graphs_and_splits_are_those_of_pygs_own_readers(make_cfg, tmp_path: Path) -> None:
    for stem, columns, names in (
        ("texas", 1703, ("PyG-WebKB", "texas")),
        ("film", 932, ("PyG-Actor", "none")),
    ):
        write_geom_gcn(tmp_path, stem, columns)
        if stem == "film":
            shutil.copytree(tmp_path / "film" / "raw", tmp_path / "actor" / "raw")
            theirs = Actor(str(tmp_path / "actor"))[0]
        else:
            theirs = WebKB(str(tmp_path), "texas")[0]
        for number in (0, 7):
            cfg = node_cfg(make_cfg, *names, path=tmp_path / stem, split_index=number)
            bundle = data.load(cfg)
            for split in SPLITS:
                (ours,) = bundle.splits[split]
                mask = theirs[f"{split}_mask"][:, number]
                assert torch.equal(ours.x, theirs.x) and torch.equal(ours.edge_index, theirs.edge_index)
                assert torch.equal(ours.y, torch.where(mask, theirs.y, -1))


def test_a_split_beyond_the_ten_is_refused(make_cfg, tmp_path: Path) -> None:
    write_geom_gcn(tmp_path, "cornell", 1703)
    cfg = node_cfg(make_cfg, "PyG-WebKB", "cornell", path=tmp_path, split_index=10)
    with pytest.raises(ConfigError, match=r"dataset.split_index: 10 must be between 0 and 9"):
        data.load(cfg)


def test_nodes_can_be_split_at_random_and_by_folds(make_cfg, tmp_path: Path) -> None:
    write_geom_gcn(tmp_path, "cornell", 1703)
    for mode, sizes in (("random", [48, 6, 6]), ("cv-stratifiedkfold-5", [36, 12, 12])):
        cfg = node_cfg(make_cfg, "PyG-WebKB", "cornell", path=tmp_path, split_mode=mode)
        parts = [(part[0].y >= 0).nonzero().flatten() for part in data.load(cfg).splits.values()]
        assert [len(part) for part in parts] == sizes
        assert sorted(torch.cat(parts).tolist()) == list(range(60))


def test_masks_of_other_nodes_are_refused(make_cfg, tmp_path: Path) -> None:
    write_geom_gcn(tmp_path, "cornell", 1703)
    file = tmp_path / "cornell" / "raw" / "cornell_split_0.6_0.2_0.npz"
    np.savez(file, **{f"{split}_mask": np.ones(5, bool) for split in SPLITS})
    with pytest.raises(DataError, match=r"cornell_split_0.6_0.2_0.npz.*60 nodes"):
        data.load(node_cfg(make_cfg, "PyG-WebKB", "cornell", path=tmp_path))


@pytest.mark.parametrize(("name", "columns", "classes"), [("Cora", 1433, 7), ("CiteSeer", 3703, 6)])
def test_planetoid_is_that_of_pygs_own_reader(make_cfg, tmp_path: Path, name, columns, classes) -> None:
    raw = tmp_path / "raw"
    write_planetoid(raw, name.lower(), columns, classes, missing_test_node=name == "CiteSeer")
    theirs = read_planetoid_data(str(raw), name)
    bundle = data.load(node_cfg(make_cfg, "PyG-Planetoid", name, path=tmp_path))
    for split in SPLITS:
        (ours,) = bundle.splits[split]
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.y, torch.where(theirs[f"{split}_mask"], theirs.y, -1))
    pairs = {tuple(pair) for pair in theirs.edge_index.t().tolist()}
    assert {tuple(pair) for pair in ours.edge_index.t().tolist()} == pairs
    assert ours.edge_index.size(1) == len(pairs)


def test_a_planetoid_pickle_that_asks_for_code_is_not_run(make_cfg, tmp_path: Path) -> None:
    write_planetoid(tmp_path / "raw", "cora", 1433, 7, missing_test_node=False)
    (tmp_path / "raw" / "ind.cora.graph").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(DataError, match=r"ind.cora.graph"):
        data.load(node_cfg(make_cfg, "PyG-Planetoid", "Cora", path=tmp_path))
