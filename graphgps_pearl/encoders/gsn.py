r"""``GSN`` (Bouritsas et al., 2020): how many small cycles and cliques every node is part of.

.. math:: p_v = f\big(\log(1 + c_3(v)), \ldots, \log(1 + c_K(v)), \log(1 + q_3(v)), \ldots\big)

with :math:`c_k(v)` the cycles of k nodes through v (as subgraphs, induced or not, each counted once) and
:math:`q_k(v)` the cliques of k nodes. Counts are exact, integers, and made once per graph by networkx. The
logarithm is taken because counts are heavy-tailed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.encoders.base import PosEncEncoder
from graphgps_pearl.encoders.mlp import NodeStatistics

SMALLEST = 3
# Above these a graph is refused: about 20 seconds of search for cycles, some hundred megabytes of cliques.
MAX_WALKS = 20_000_000
MAX_CLIQUES = 1_000_000


def subgraph_counts(edge_index: Tensor, num_nodes: int, max_cycle: int = 8, max_clique: int = 0) -> Tensor:
    """Cycles of 3 to ``max_cycle`` nodes, then cliques of 3 to ``max_clique`` nodes, through every node.

    Integers [n, columns]; directions, self-loops and repeated edges do not count. 0 leaves a kind out. A
    graph with so many that the search would not end is a ValueError.

    >>> triangle_with_tail = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 3]])
    >>> subgraph_counts(triangle_with_tail, 4, max_cycle=4, max_clique=3).tolist()
    [[1, 0, 1], [1, 0, 1], [1, 0, 1], [0, 0, 0]]
    """
    cycles, cliques = num_counts(max_cycle), num_counts(max_clique)
    counts = torch.zeros(num_nodes, cycles + cliques, dtype=torch.int64)
    graph = nx.Graph((u, v) for u, v in edge_index.T.tolist() if u != v)
    graph = nx.k_core(graph, 2)  # a node outside is on no cycle and in no clique of three
    if not graph:
        return counts
    if cycles:
        _refuse_many_walks(graph, max_cycle)
        _add(counts, 0, nx.simple_cycles(graph, length_bound=max_cycle))
    if cliques:
        _refuse_many_cliques(graph, max_clique)
        by_size = takewhile(lambda clique: len(clique) <= max_clique, nx.enumerate_all_cliques(graph))
        _add(counts, cycles, (clique for clique in by_size if len(clique) >= SMALLEST))
    return counts


def num_counts(largest: int) -> int:
    """Columns for subgraphs of 3 to ``largest`` nodes."""
    return largest - SMALLEST + 1 if largest else 0


def _add(counts: Tensor, first: int, subgraphs: Iterable[list[int]]) -> None:
    """Count every subgraph at its nodes, in the column of its size."""
    flat, width = counts.view(-1).numpy(), counts.size(1)
    for nodes in subgraphs:
        column = first + len(nodes) - SMALLEST
        for node in nodes:
            flat[node * width + column] += 1


def _refuse_many_walks(graph: nx.Graph, max_cycle: int) -> None:
    """Bound the search by the walks of ``max_cycle - 1`` steps that never turn straight back."""
    index = {node: i for i, node in enumerate(graph)}
    source, target = torch.tensor([(index[u], index[v]) for u, v in graph.edges]).T
    source, target = torch.cat((source, target)), torch.cat((target, source))
    back = torch.arange(source.numel()).roll(source.numel() // 2)  # the same edge the other way
    walks = torch.ones(source.numel(), dtype=torch.float64)  # that begin with a directed edge
    for _ in range(max_cycle - 2):
        leaving = torch.zeros(len(index), dtype=torch.float64).index_add_(0, source, walks)
        walks = leaving[target] - walks[back]
    if walks.sum() > MAX_WALKS:
        raise ValueError(
            f"{walks.sum():.1e} walks to search for cycles of up to {max_cycle} nodes, more than "
            f"{MAX_WALKS:.0e}; lower posenc_GSN.max_cycle, or set it to 0 and count cliques"
        )


def _refuse_many_cliques(graph: nx.Graph, max_clique: int) -> None:
    """Bound the cliques by core numbers: a node is the first of at most C(core, k - 1) cliques of k nodes."""
    cores = nx.core_number(graph).values()
    most = sum(math.comb(core, size - 1) for core in cores for size in range(SMALLEST, max_clique + 1))
    if most > MAX_CLIQUES:
        raise ValueError(
            f"up to {most:.1e} cliques of up to {max_clique} nodes, more than {MAX_CLIQUES:.0e}; "
            "lower posenc_GSN.max_clique"
        )


class AddSubgraphCounts(BaseTransform):
    """Stores ``pestat_<name>`` [n, columns] of :func:`subgraph_counts`, as integers."""

    version = 1

    def __init__(self, name: str, max_cycle: int, max_clique: int) -> None:
        self.name, self.max_cycle, self.max_clique = name, max_cycle, max_clique

    def forward(self, data: Data) -> Data:
        """Add the attribute to one graph."""
        counts = subgraph_counts(data.edge_index, data.num_nodes, self.max_cycle, self.max_clique)
        data[f"pestat_{self.name}"] = counts.int()
        return data

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(name={self.name}, max_cycle={self.max_cycle}, "
            f"max_clique={self.max_clique}, version={self.version})"
        )


class GSNNodeEncoder(PosEncEncoder):
    """GSN for GraphGym; config group ``posenc_GSN``."""

    name = "GSN"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> NodeStatistics:
        """Read ``posenc_GSN``."""
        columns = num_counts(settings.max_cycle) + num_counts(settings.max_clique)
        return NodeStatistics.from_settings(columns, settings)

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """The counts."""
        return [AddSubgraphCounts(cls.name, settings.max_cycle, settings.max_clique)]

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.pestat_GSN``."""
        return self.encoding(self.precomputed(batch, "pestat_GSN").log1p())
