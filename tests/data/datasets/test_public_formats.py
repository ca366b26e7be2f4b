"""Datasets of GraphGPS's configs, read from small files of the public formats and compared with others'
readers."""

import os
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.public_files import (
    SPLITS,
    write_contacts,
    write_malnet,
    write_ogb,
    write_pcqm4m,
    write_superpixels,
    write_table,
)
from torch_geometric.datasets import LRGBDataset, MalNetTiny
from torch_geometric.utils import remove_isolated_nodes

from graphgps_pearl import data
from graphgps_pearl.errors import DataError
from graphgps_pearl.ogb_features import ogb_features


@pytest.mark.parametrize(
    ("name", "task_type"),
    [
        ("ogbg-molhiv", "classification"),
        ("ogbg-molpcba", "classification_multilabel"),
        ("ogbg-ppa", "classification"),
    ],
)
def test_ogb_graphs_are_those_of_ogbs_own_reader(make_cfg, tmp_path: Path, name: str, task_type: str) -> None:
    write_ogb(tmp_path, name)
    bundle = data.load(make_cfg("OGB", name, path=tmp_path, task_type=task_type, check_totals=False))
    ogb_features()
    from ogb.io.read_graph_pyg import read_graph_pyg

    raw = tmp_path / name.replace("-", "_") / "raw"
    theirs = read_graph_pyg(str(raw), add_inverse_edge=True)
    rows = {"train": range(4, 10), "val": range(2), "test": range(2, 4)}
    for split in SPLITS:
        for ours, row in zip(bundle.splits[split], rows[split], strict=True):
            assert torch.equal(ours.edge_index, theirs[row].edge_index)
            assert torch.allclose(ours.edge_attr.double(), theirs[row].edge_attr.double())
            assert ours.num_nodes == theirs[row].num_nodes
            if name != "ogbg-ppa":
                assert torch.equal(ours.x, theirs[row].x)
    labels = torch.cat([part.targets() for part in bundle.splits.values()])
    assert labels.shape[-1] == (128 if name == "ogbg-molpcba" else labels.shape[-1])
    assert bool(labels.isnan().any()) == (name == "ogbg-molpcba")


def test_methods_are_those_of_ogbs_own_reader_with_the_edges_of_its_example(make_cfg, tmp_path: Path) -> None:
    write_ogb(tmp_path, "ogbg-code2")
    settings = {"task_type": "subtoken_prediction", "check_totals": False, "node_encoder_name": "ASTNode"}
    cfg = make_cfg("OGB", "ogbg-code2", path=tmp_path, edge_encoder_name="ASTEdge", **settings)
    cfg.gnn.head = "ogb_code_graph"
    bundle = data.load(cfg)
    ogb_features()
    import pandas
    from ogb.io.read_graph_pyg import read_graph_pyg

    raw = tmp_path / "ogbg_code2" / "raw"
    more = ["node_is_attributed", "node_dfs_order", "node_depth"]
    theirs = read_graph_pyg(str(raw), add_inverse_edge=False, additional_node_files=more)
    names = [
        str(row[0]).split(" ") for row in pandas.read_csv(raw / "graph-label.csv.gz", header=None).values
    ]
    counts: dict[str, int] = {}
    for word in (word for name in names[4:] for word in name):
        counts[word] = counts.get(word, 0) + 1
    ranked = sorted(counts, key=lambda word: -counts[word])
    rows = {"train": range(4, 10), "val": range(2), "test": range(2, 4)}
    sizes = []
    for split in SPLITS:
        for ours, row in zip(bundle.splits[split], rows[split], strict=True):
            their = theirs[row]
            n = min(their.num_nodes, 1000)
            sizes.append(ours.num_nodes)
            assert ours.x[:, :2].equal(their.x[:n]) and ours.num_nodes == n
            assert ours.x[:, 2].equal(their.node_depth[:n, 0].clamp(max=20))
            tree = [(u, v) for u, v in their.edge_index.T.tolist() if max(u, v) < n]
            tokens = [v for v in range(n) if their.node_is_attributed[v, 0] == 1]
            chain = list(pairwise(tokens))
            expected = [(u, v, 0, 0) for u, v in tree] + [(v, u, 0, 1) for u, v in tree]
            expected += [(u, v, 1, 0) for u, v in chain] + [(v, u, 1, 1) for u, v in chain]
            found = torch.cat((ours.edge_index.T, ours.edge_attr), dim=1)
            assert list(map(tuple, found.tolist())) == expected
            numbers = [ranked.index(word) if word in ranked else 5000 for word in names[row][:5]]
            assert ours.y.tolist() == [numbers + [5001] * (5 - len(numbers))]
            held = [w for w in ours.y_words[0].tolist() if w >= 0]
            assert len(held) == len(set(names[row]))
            assert {w for w in held if w < 5000} == {ranked.index(w) for w in names[row] if w in ranked}
    assert 1000 in sizes and "nan" in {word for name in names for word in name}  # OGB's reading of "null"


def test_ogb_tables_that_do_not_fit_are_refused(make_cfg, tmp_path: Path) -> None:
    write_ogb(tmp_path, "ogbg-molhiv")
    write_table(tmp_path / "ogbg_molhiv" / "raw" / "graph-label.csv.gz", [[1], [0]])
    cfg = make_cfg("OGB", "ogbg-molhiv", path=tmp_path, task_type="classification", check_totals=False)
    with pytest.raises(DataError, match=r"graph-label.csv.gz: \(2, 1\), not \(10, 1\)"):
        data.load(cfg)


def test_pcqm4m_divides_as_graphgps_does(make_cfg, tmp_path: Path) -> None:
    write_pcqm4m(tmp_path)
    bundle = data.load(make_cfg("OGB", "PCQM4Mv2-full", path=tmp_path, check_totals=False))
    order = np.random.default_rng(42).permutation(34)
    gaps = {"val": 2 + 0.1 * order[:2], "train": 2 + 0.1 * order[2:], "test": 2 + 0.1 * np.arange(34, 38)}
    for split, expected in gaps.items():
        assert np.allclose(bundle.splits[split].targets().flatten(), expected, atol=1e-6)
    assert bundle.splits["train"][0].x.shape[1] == 9


def test_pcqm4m_split_file_that_asks_for_code_is_not_run(make_cfg, tmp_path: Path) -> None:
    write_pcqm4m(tmp_path)
    torch.save({"train": os.system, "valid": 0}, tmp_path / "pcqm4m-v2" / "split_dict.pt")
    with pytest.raises(DataError, match=r"split_dict.pt: not a split file"):
        data.load(make_cfg("OGB", "PCQM4Mv2-full", path=tmp_path, check_totals=False))


@pytest.mark.parametrize("name", ["PascalVOC-SP", "COCO-SP"])
def test_superpixels_are_those_of_pygs_own_reader(make_cfg, tmp_path: Path, name: str) -> None:
    classes = range(21) if name == "PascalVOC-SP" else [0, 1, 11, 13, 27, 31, 44, 67, 90]
    raw = tmp_path / name.lower() / "raw"
    write_superpixels(raw, classes)
    family = "PyG-VOCSuperpixels" if name == "PascalVOC-SP" else "PyG-COCOSuperpixels"
    settings = {"task": "node", "task_type": "classification", "check_totals": False, "slic_compactness": 30}
    bundle = data.load(make_cfg(family, "edge_wt_region_boundary", path=raw, **settings))
    for split in SPLITS:
        theirs = LRGBDataset(str(tmp_path), name, split=split)
        for ours, other in zip(bundle.splits[split], theirs, strict=True):
            for key in ("x", "edge_attr", "edge_index", "y"):
                assert torch.equal(ours[key], other[key]), key


def test_a_label_that_coco_does_not_have(make_cfg, tmp_path: Path) -> None:
    write_superpixels(tmp_path / "raw", [12])
    settings = {"task": "node", "task_type": "classification", "check_totals": False}
    with pytest.raises(DataError, match=r"graph 0 \(train.pickle\).*labels are not COCO's"):
        data.load(make_cfg("PyG-COCOSuperpixels", "edge_wt_region_boundary", path=tmp_path, **settings))


def test_malnet_is_that_of_pygs_own_reader_without_isolated_nodes(make_cfg, tmp_path: Path) -> None:
    write_malnet(tmp_path / "raw")
    settings = {"task_type": "classification", "check_totals": False}
    bundle = data.load(make_cfg("PyG-MalNetTiny", "LocalDegreeProfile", path=tmp_path, **settings))
    shutil.copytree(tmp_path / "raw", tmp_path / "pyg" / "raw")
    for split in SPLITS:
        theirs = MalNetTiny(str(tmp_path / "pyg"), split=split)
        assert len(theirs) == len(bundle.splits[split])
        expected = []
        for graph in theirs:
            edge_index, _, kept = remove_isolated_nodes(graph.edge_index, num_nodes=graph.num_nodes)
            expected.append((int(kept.sum()), edge_index.tolist(), int(graph.y)))
        found = sorted((g.num_nodes, g.edge_index.tolist(), int(g.y)) for g in bundle.splits[split])
        assert found == sorted(expected)
    assert bundle.splits["train"][0].x.shape[1] == 5


def test_malnet_says_where_its_files_go(make_cfg, tmp_path: Path) -> None:
    cfg = make_cfg("PyG-MalNetTiny", "LocalDegreeProfile", task_type="classification")
    with pytest.raises(DataError, match=r"MalNetTiny: put malnet-graphs-tiny/ .*here, from http"):
        data.load(cfg)


def test_contacts_come_with_pairs_that_are_none(make_cfg, tmp_path: Path) -> None:
    write_contacts(tmp_path)
    settings = {"task": "edge", "task_type": "classification", "check_totals": False}
    bundle = data.load(make_cfg("OGB", "PCQM4Mv2Contact-shuffle", path=tmp_path, **settings))
    theirs = torch.load(tmp_path / "pcqmcontact" / "train.pt")
    for ours, (x, edge_attr, edge_index, pairs, _) in zip(bundle.splits["train"], theirs, strict=True):
        assert torch.equal(ours.x, x) and torch.equal(ours.edge_attr, edge_attr)
        assert torch.equal(ours.edge_index, edge_index)
        count = pairs.size(1)
        assert torch.equal(ours.edge_index_labeled[:, :count], pairs) and ours.edge_label[:count].all()
        assert not ours.edge_label[count:].any() and len(ours.edge_label) > count
        keys = [tuple(pair) for pair in ours.edge_index_labeled.t().tolist()]
        assert len(set(keys)) == len(keys)  # no pair twice, and none both a contact and not


def test_malnet_is_read_again_if_an_edge_list_changes_but_not_its_size(make_cfg, tmp_path: Path) -> None:
    write_malnet(tmp_path / "raw")
    cfg = make_cfg("PyG-MalNetTiny", "none", path=tmp_path, check_totals=False, task_type="classification")
    before = data.load(cfg).identity
    file = max((tmp_path / "raw").rglob("*.edgelist"))
    text = file.read_text()
    changed = text.replace("1", "2")
    assert len(changed) == len(text) and changed != text
    file.write_text(changed)
    assert data.load(cfg).identity != before
