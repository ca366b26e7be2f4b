"""Graphs to measure on: real molecules if they are there, chains with rings of the same sizes otherwise."""

from __future__ import annotations

import sys
from itertools import chain, islice
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl import config, data
from graphgps_pearl.errors import UserError

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


def chain_with_rings(n: int, rings: int) -> Tensor:
    """A chain of n nodes with a six-ring every so many nodes, [2, E]."""
    return _chain(n, torch.arange(0, max(n - 5, 0), rings))


def irregular_chain(n: int) -> Tensor:
    """A chain of n nodes with six-rings that begin 6 to 12 nodes after each other, [2, E]."""
    steps = torch.randint(6, 13, (n // 6 + 1,), generator=torch.Generator().manual_seed(0))
    start = steps.cumsum(0) - steps[0]
    return _chain(n, start[start < n - 5])


def _chain(n: int, start: Tensor) -> Tensor:
    node = torch.arange(n - 1)
    one_way = torch.cat([torch.stack([node, node + 1]), torch.stack([start, start + 5])], dim=1)
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def synthetic(kind: str, count: int) -> list[Data]:
    """Graphs as large as ZINC's (9 to 37 nodes) or as Peptides' (8 to 444, mean near 150)."""
    draw = torch.Generator().manual_seed(0)
    unit = torch.rand(count, generator=draw)
    sizes = (9 + 28 * unit).int() if kind == "zinc" else (8 + 436 * unit**2).int()
    graphs = []
    for n in sizes.tolist():
        edges = chain_with_rings(n, 7 + n % 5)
        width = (1, 1) if kind == "zinc" else (9, 3)
        x = torch.zeros(n, width[0], dtype=torch.long)
        attr = torch.ones(edges.size(1), width[1], dtype=torch.long)
        attr = attr.squeeze(1) if kind == "zinc" else attr
        y = torch.zeros(1, 1 if kind == "zinc" else 11)
        graphs.append(Data(x=x, edge_index=edges, edge_attr=attr, y=y))
    return graphs


def load_graphs(kind: str, count: int, folder: str | None) -> list[Data]:
    """Real graphs if they are there: those of the training split, then the others."""
    if folder is not None:
        name = "zinc-none" if kind == "zinc" else "peptides-func-none"
        subset = ["dataset.subset", str(max(count, 1000))] if kind == "peptides" else []
        if kind == "peptides" and (own := Path(folder) / "Peptides").is_dir():
            subset += ["dataset.path", str(own)]
        try:
            cfg = config.load(CONFIGS / f"{name}.yaml", ["dataset.dir", folder, *subset])
            return list(islice(chain.from_iterable(data.load(cfg).splits.values()), count))
        except UserError as error:
            print(f"{kind}: synthetic graphs ({error})", file=sys.stderr)
    return synthetic(kind, count)


def random_edges(nodes: int) -> Tensor:
    """2 N edges between nodes at random, both ways."""
    ends = torch.randint(nodes, (2, 2 * nodes), generator=torch.Generator().manual_seed(0))
    return torch.cat([ends, ends.flip(0)], dim=1)
