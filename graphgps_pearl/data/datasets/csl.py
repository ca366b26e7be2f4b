"""CSL: 150 circular skip link graphs of 41 nodes in 10 classes, which no 1-WL network tells apart.

Class c has skip length R_c: node i is joined to i +- 1 and i +- R_c (modulo 41). Each class has 15 graphs,
the first in this order of nodes and the others relabelled at random, as in the published construction
(whose own random relabellings differ; no encoding that deserves its name sees them). 5-fold
cross-validation by ``dataset.split_index``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from graphgps_pearl.data.base import DatasetSpec, Facts, Items, Source
from graphgps_pearl.data.registry import register_dataset

NODES = 41
SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)
COPIES = 15
_SEED = 0


def circular_skip_link(skip: int, order: np.ndarray[Any, Any] | None = None) -> torch.Tensor:
    """edge_index [2, 164] of the graph with one skip length; ``order[i]`` is the new name of node i."""
    i = np.arange(NODES)
    names = i if order is None else order
    ends = [(names[i], names[(i + step) % NODES]) for step in (1, -1, skip, -skip)]
    edges = np.concatenate([np.stack(pair) for pair in ends], axis=1)
    edges = edges[:, np.lexsort((edges[1], edges[0]))]
    return torch.from_numpy(edges.astype(np.int64))


@register_dataset("PyG-GNNBenchmarkDataset", "CSL")
class CSL(Source):
    """x [41, 1] of ones, no edge features, y the class [1]."""

    reads_files = False

    standard_split_mode = "cv-stratifiedkfold-5"

    def spec(self) -> DatasetSpec:
        """Ten classes on graphs without features."""
        return DatasetSpec("CSL", "classification", 1, 0, len(SKIPS), tuple(f"R{skip}" for skip in SKIPS))

    def fingerprint(self) -> dict[str, Any]:
        """The construction's numbers."""
        return {"nodes": NODES, "skips": SKIPS, "copies": COPIES, "seed": _SEED}

    def facts(self) -> Facts:
        """Nodes and directed edges of 150 4-regular graphs."""
        return Facts(None, 150 * NODES, 150 * NODES * 4)

    def items(self) -> Items:
        """Class by class."""
        rng = np.random.default_rng(_SEED)
        orders = [None if i % COPIES == 0 else rng.permutation(NODES) for i in range(COPIES * len(SKIPS))]

        def graph(i: int) -> Data:
            label = i // COPIES
            edge_index = circular_skip_link(SKIPS[label], orders[i])
            return Data(x=torch.ones(NODES, 1), edge_index=edge_index, y=torch.tensor([label]))

        return Items("CSL", len(orders), graph, lambda i: f"graph {i}")
