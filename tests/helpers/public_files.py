"""Small data in the formats of public datasets' own files, made up, for tests and for
scripts/upstream_configs.py.

Every writer fills a folder that ``dataset.path`` can name.
"""

from __future__ import annotations

import csv
import gzip
import io
import pickle
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import one_hot

from graphgps_pearl.data import molecules

SPLITS = ("train", "val", "test")
SMILES = (
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "CCO",
    "C1CCCCC1N",
    "OC(=O)C[C@H](N)C(=O)O",
    "c1ccc2ccccc2c1",
    "CC(C)Cc1ccc(cc1)C(C)C(=O)O",
)


def block_model(
    rng: np.random.Generator, labels: np.ndarray, inside: float, between: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """edge_index [2, E] of a stochastic block model, and the classes [N]."""
    likely = np.where(labels[:, None] == labels[None], inside, between)
    drawn = np.triu(rng.random(likely.shape) < likely, 1)
    return torch.from_numpy(np.stack((drawn | drawn.T).nonzero())), torch.from_numpy(labels)


def write_gnn_benchmark(folder: Path, name: str, sizes: Sequence[int] = (6, 2, 2)) -> None:
    """PyG's file of PATTERN, CLUSTER, MNIST or CIFAR10.

    PATTERN: nodes of class 1 form a dense pattern in a sparse graph, so that message passing can tell them.
    """
    rng = np.random.default_rng(0)

    def graph() -> dict[str, Any]:
        nodes = int(rng.integers(20, 30))
        if name in ("PATTERN", "CLUSTER"):
            classes, columns = (2, 3) if name == "PATTERN" else (6, 7)
            labels = rng.integers(0, classes, nodes)
            labels[:classes] = np.arange(classes)
            inside = np.where(labels == 0, 0.1, 0.6)[:, None] if name == "PATTERN" else 0.6
            edge_index, y = block_model(rng, labels, inside, 0.1)
            return {
                "x": one_hot(torch.from_numpy(rng.integers(0, columns, nodes)), columns).float(),
                "edge_index": edge_index,
                "y": y,
            }
        edge_index, _ = block_model(rng, np.zeros(nodes, int), 0.3, 0.0)
        return {
            "x": torch.from_numpy(rng.random((nodes, 1 if name == "MNIST" else 3))).float(),
            "pos": torch.from_numpy(rng.random((nodes, 2))).float(),
            "edge_index": edge_index,
            "edge_attr": torch.from_numpy(rng.random(edge_index.size(1))).float(),
            "y": torch.tensor([int(rng.integers(0, 10))]),
        }

    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    torch.save([[graph() for _ in range(size)] for size in sizes], raw / f"{name}_v2.pt")


def write_geom_gcn(folder: Path, stem: str, columns: int, nodes: int = 60) -> None:
    """Geom-GCN's text files and ten splits: five communities, whose nodes share words now and then."""
    rng = np.random.default_rng(0)
    raw = folder / stem / "raw"
    raw.mkdir(parents=True)
    labels = np.arange(nodes) % 5
    words = rng.random((nodes, columns)) < 0.02
    words[np.arange(nodes), labels] |= rng.random(nodes) < 0.7
    words[:, -1] = True
    edges = np.stack(block_model(rng, labels, 0.5, 0.02)[0].numpy())
    edges = np.concatenate((edges, edges[:, :1]), axis=1)  # one repeated
    lines = ["node_id\tfeature\tlabel"]
    for i, row in enumerate(words):
        held = row.nonzero()[0] if stem == "film" else row.astype(int)
        lines.append(f"{i}\t{','.join(map(str, held))}\t{labels[i]}")
    (raw / "out1_node_feature_label.txt").write_text("\n".join(lines) + "\n")
    pairs = "".join(f"{a}\t{b}\n" for a, b in edges.T)
    (raw / "out1_graph_edges.txt").write_text("node_id\tnode_id\n" + pairs)
    for i in range(10):
        order = rng.permutation(nodes)
        parts = np.split(order, [int(0.6 * nodes), int(0.8 * nodes)])
        masks = {f"{s}_mask": np.isin(np.arange(nodes), part) for s, part in zip(SPLITS, parts, strict=True)}
        np.savez(raw / f"{stem}_split_0.6_0.2_{i}.npz", **masks)


def write_planetoid(folder: Path, name: str, columns: int, classes: int, missing_test_node: bool) -> None:
    """Planetoid's pickles: 20 training nodes a class, then others, then the test nodes in no order."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    train, known = 20 * classes, 20 * classes + 510
    test = known + rng.permutation(30)
    if missing_test_node:
        test = test[test != known + 4]
    total = known + 30

    def save(part: str, value: Any) -> None:
        (folder / f"ind.{name}.{part}").write_bytes(pickle.dumps(value, protocol=4))

    def rows(count: int) -> tuple[Any, np.ndarray]:
        words = sparse.csr_matrix((rng.random((count, columns)) < 0.01).astype(np.float32))
        return words, np.eye(classes, dtype=np.int32)[rng.integers(0, classes, count)]

    for (x, y), size in ((("allx", "ally"), known), (("tx", "ty"), len(test))):
        words, labels = rows(size)
        save(x, words)
        save(y, labels)
        if x == "allx":
            save("x", words[:train])
            save("y", labels[:train])
    neighbours: dict[int, list[int]] = defaultdict(list)
    for a, b in [*rng.integers(0, total, (3 * total, 2)).tolist(), [1, 1], [2, 3], [2, 3], [total - 1, 0]]:
        neighbours[a].append(b)
        neighbours[b].append(a)
    save("graph", neighbours)
    (folder / f"ind.{name}.test.index").write_text("".join(f"{i}\n" for i in test))


def write_table(file: Path, rows: Sequence[Sequence[object]]) -> None:
    """A gzipped CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.getvalue().encode()))


def molecule_graphs(count: int) -> list[dict[str, Any]]:
    """Molecules as OGB's own ``smiles2graph`` has them."""
    return [
        molecules.to_graph(molecules.parse(SMILES[i % len(SMILES)]), "ogb").to_dict() for i in range(count)
    ]


def write_ogb(folder: Path, name: str, count: int = 10) -> None:
    """OGB's CSV files of molhiv, molpcba (a third of whose labels are missing) or ppa."""
    rng = np.random.default_rng(0)
    raw = folder / name.replace("-", "_") / "raw"
    if name == "ogbg-code2":
        write_methods(raw, rng, count)
        return
    if name == "ogbg-ppa":
        graphs = []
        for _ in range(count):
            edges, _ = block_model(rng, np.zeros(12, int), 0.3, 0.0)
            kept = edges[:, edges[0] < edges[1]].numpy()
            graphs.append((12, None, kept, rng.random((kept.shape[1], 7)).round(3)))
        labels = [[int(rng.integers(0, 37))] for _ in range(count)]
    else:
        held = molecule_graphs(count)
        graphs = [(len(g["x"]), g["x"], g["edge_index"][:, ::2].numpy(), g["edge_attr"][::2]) for g in held]
        tasks = 1 if name == "ogbg-molhiv" else 128
        labels = [[int((i + j) % 2) for j in range(tasks)] for i in range(count)]
        if tasks > 1:
            labels = [["" if rng.random() < 0.3 else label for label in row] for row in labels]
    write_table(raw / "num-node-list.csv.gz", [[nodes] for nodes, *_ in graphs])
    write_table(raw / "num-edge-list.csv.gz", [[edges.shape[1]] for _, _, edges, _ in graphs])
    write_table(raw / "edge.csv.gz", [pair for _, _, edges, _ in graphs for pair in edges.T.tolist()])
    write_table(raw / "edge-feat.csv.gz", [row for *_, values in graphs for row in values.tolist()])
    if name != "ogbg-ppa":
        write_table(raw / "node-feat.csv.gz", [row for _, x, *_ in graphs for row in x.tolist()])
    write_table(raw / "graph-label.csv.gz", labels)
    kind = "species" if name == "ogbg-ppa" else "scaffold"
    parts = {"train": range(4, count), "valid": range(2), "test": range(2, 4)}
    for split, part in parts.items():
        write_table(raw.parent / "split" / kind / f"{split}.csv.gz", [[i] for i in part])


def write_methods(raw: Path, rng: np.random.Generator, count: int) -> None:
    """OGB's CSV files of code2: random trees, named by the types of their first nodes; one has 1,200."""
    words = ["get", "set", "name", "item", "all", "to", "null", "x2"]
    trees, names = [], []
    for i in range(count):
        size = 1200 if i == 5 else int(rng.integers(4, 12))
        parent = np.array([int(rng.integers(max(0, j - 3), j)) for j in range(1, size)])
        depth = np.zeros(size, int)
        for j, p in enumerate(parent, start=1):
            depth[j] = depth[p] + 1
        kinds = np.stack((rng.integers(0, 98, size), rng.integers(0, 10_030, size)), axis=1)
        trees.append((kinds, rng.random(size) < 0.5, depth, np.stack((parent, np.arange(1, size)), axis=1)))
        names.append([" ".join(words[kind % 8] for kind in kinds[: 1 + i % 7, 0])])
    names[0] = ["null"]  # which pandas reads as missing
    write_table(raw / "num-node-list.csv.gz", [[len(tree[0])] for tree in trees])
    write_table(raw / "num-edge-list.csv.gz", [[len(tree[3])] for tree in trees])
    columns = ("node-feat", "node_is_attributed", "node_depth", "edge")
    for name, parts in zip(columns, zip(*trees, strict=True), strict=True):
        rows = [np.atleast_1d(row).astype(int).tolist() for part in parts for row in part]
        write_table(raw / f"{name}.csv.gz", rows)
    orders = [[j] for tree in trees for j in range(len(tree[0]))]
    write_table(raw / "node_dfs_order.csv.gz", orders)
    write_table(raw / "graph-label.csv.gz", names)
    parts = {"train": range(4, count), "valid": range(2), "test": range(2, 4)}
    for split, part in parts.items():
        write_table(raw.parent / "split" / "project" / f"{split}.csv.gz", [[i] for i in part])


def write_pcqm4m(folder: Path, count: int = 40) -> None:
    """PCQM4Mv2's table of SMILES and gaps, and its split; the last two have no label."""
    smiles = [SMILES[i % len(SMILES)] for i in range(count)]
    gaps: list[object] = [round(2 + 0.1 * i, 2) for i in range(count - 2)]
    rows = [[i, text, gap] for i, (text, gap) in enumerate(zip(smiles, [*gaps, "", ""], strict=True))]
    write_table(folder / "pcqm4m-v2" / "raw" / "data.csv.gz", [["idx", "smiles", "homolumogap"], *rows])
    parts = {"train": range(count - 6), "valid": range(count - 6, count - 2)}
    parts |= {"test-dev": range(count - 2, count - 1), "test-challenge": range(count - 1, count)}
    arrays = {split: np.array(part) for split, part in parts.items()}
    torch.save(arrays, folder / "pcqm4m-v2" / "split_dict.pt")


def write_contacts(folder: Path, sizes: Sequence[int] = (6, 2, 2)) -> None:
    """PyG's files of PCQM-Contact: the atoms other than carbon are in contact, both directions."""
    (folder / "pcqmcontact").mkdir(parents=True)
    for split, size in zip(SPLITS, sizes, strict=True):
        rows = []
        for graph in molecule_graphs(size):
            atoms = (graph["x"][:, 0] != 5).nonzero().flatten()
            atoms = atoms if len(atoms) > 1 else torch.tensor([0, len(graph["x"]) - 1])
            both = torch.cartesian_prod(atoms, atoms).t()
            both = both[:, both[0] != both[1]].contiguous()
            parts = (graph["x"], graph["edge_attr"], graph["edge_index"], both, torch.ones(both.size(1)))
            rows.append(parts)
        torch.save(rows, folder / "pcqmcontact" / f"{split}.pt")


def write_superpixels(folder: Path, classes: Sequence[int], columns: int = 2) -> None:
    """The pickles of PascalVOC-SP or COCO-SP."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for split, size in zip(SPLITS, (4, 2, 2), strict=True):
        graphs = []
        for _ in range(size):
            nodes = int(rng.integers(15, 25))
            edges, _ = block_model(rng, np.zeros(nodes, int), 0.3, 0.0)
            x, values = rng.random((nodes, 14)), rng.random((edges.size(1), columns))
            labels = rng.choice(np.asarray(classes), nodes).tolist()
            graphs.append((torch.from_numpy(x), torch.from_numpy(values), edges, labels))
        (folder / f"{split}.pickle").write_bytes(pickle.dumps(graphs))


def write_malnet(folder: Path) -> None:
    """MalNet-Tiny's edge lists and names of the splits."""
    rng = np.random.default_rng(0)
    names: dict[str, list[str]] = {split: [] for split in SPLITS}
    for kind in ("addisplay", "adware", "benign", "downloader", "trojan"):
        place = folder / "malnet-graphs-tiny" / kind / "family"
        place.mkdir(parents=True)
        for i in range(4):
            edges = rng.integers(0, 20, (40, 2)).tolist()
            header = "# Directed graph\n# call graph\n# Nodes: 20\n# Edges: 40\n# FromNodeId\tToNodeId\n"
            text = header + "".join(f"{a}\t{b}\n" for a, b in edges)
            (place / f"{kind}{i}.edgelist").write_text(text)
            names[SPLITS[max(0, i - 1)]].append(f"{kind}/family/{kind}{i}")
    (folder / "split_info_tiny" / "type").mkdir(parents=True)
    for split, part in names.items():
        (folder / "split_info_tiny" / "type" / f"{split}.txt").write_text("\n".join(part) + "\n")


def write_zinc(folder: Path, counts: dict[str, int], seed: int = 0) -> None:
    """Random molecules as ZINC's pickles of dicts, and index files that pick some of them."""
    generator = torch.Generator().manual_seed(seed)
    folder.mkdir(parents=True)
    for split, count in counts.items():
        held = []
        for _ in range(count + 3):
            n = int(torch.randint(2, 9, (1,), generator=generator))
            bonds = torch.randint(0, 4, (n, n), generator=generator).triu(1)
            held.append(
                {
                    "num_atom": n,
                    "atom_type": torch.randint(0, 28, (n,), generator=generator),
                    "bond_type": bonds + bonds.t(),
                    "logP_SA_cycle_normalized": torch.randn(1, generator=generator),
                }
            )
        (folder / f"{split}.pickle").write_bytes(pickle.dumps(held))
        (folder / f"{split}.index").write_text(",".join(str(i) for i in range(1, count + 1)) + "\n")


def write_peptides(folder: Path, targets: int) -> None:
    """PyG's files of Peptides-func (10 labels) or Peptides-struct (11 targets)."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True)
    for split, size in zip(SPLITS, (7, 4, 4), strict=True):
        rows = []
        for i, graph in enumerate(molecule_graphs(size)):
            y = (np.arange(10) + i) % 2 if targets == 10 else rng.standard_normal(targets)
            parts = (graph["x"], graph["edge_attr"], graph["edge_index"], torch.tensor(y).float().view(1, -1))
            rows.append(parts)
        torch.save(rows, folder / f"{split}.pt")


def write_small(folder: Path, data_format: str, name: str) -> None:
    """Small files of a public dataset, by ``dataset.format`` and ``dataset.name``."""
    if data_format == "PyG-ZINC":
        write_zinc(folder / "raw", {"train": 8, "val": 4, "test": 4})
    elif name.startswith("peptides-"):
        write_peptides(folder, 10 if name == "peptides-functional" else 11)
    elif name.startswith("ogbg-"):
        write_ogb(folder, name)
    elif name.startswith("PCQM4Mv2-"):
        write_pcqm4m(folder)
    elif name.startswith("PCQM4Mv2Contact"):
        write_contacts(folder)
    elif data_format == "PyG-GNNBenchmarkDataset":
        write_gnn_benchmark(folder, name)
    elif data_format in ("PyG-VOCSuperpixels", "PyG-COCOSuperpixels"):
        write_superpixels(folder / "raw", range(11))
    elif data_format == "PyG-MalNetTiny":
        write_malnet(folder)
    elif data_format in ("PyG-WebKB", "PyG-Actor", "PyG-WikipediaNetwork"):
        stem = "film" if data_format == "PyG-Actor" else name
        columns = {"film": 932, "chameleon": 2325, "squirrel": 2089}.get(stem, 1703)
        write_geom_gcn(folder, stem, columns, nodes=30)  # degrees within those of the public graphs
    else:
        raise ValueError(f"no small files of {data_format}, {name}")
