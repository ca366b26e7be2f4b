"""Small data in the formats of public datasets' own files, made up, for tests and for
scripts/upstream_configs.py.

Every writer fills a folder that ``dataset.path`` can name.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch.nn.functional import one_hot

SPLITS = ("train", "val", "test")


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
