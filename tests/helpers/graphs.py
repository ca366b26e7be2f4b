"""Graphs that tests keep coming back to, as ``edge_index`` tensors."""

from __future__ import annotations

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

CSL_SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)


def from_networkx(graph: nx.Graph) -> Tensor:
    """Both directions of every edge, nodes in the graph's own order: [2, E]."""
    number = {node: i for i, node in enumerate(graph.nodes)}
    edges = torch.tensor([[number[u], number[v]] for u, v in graph.edges], dtype=torch.long).reshape(-1, 2)
    return torch.cat([edges, edges.flip(1)]).T.contiguous()


def circular_skip_link(skip: int, n: int = 41) -> Tensor:
    """A ring of n nodes, each linked to the one ``skip`` ahead: 4-regular, so 1-WL sees no difference."""
    return from_networkx(nx.circulant_graph(n, [1, skip]))


def random_graph(n: int, p: float = 0.4, seed: int = 0) -> Tensor:
    """An Erdős–Rényi graph."""
    return from_networkx(nx.gnp_random_graph(n, p, seed=seed))


def molecule_like(n: int, seed: int = 0) -> Tensor:
    """A chain with six-rings and branches, sparse as molecules are."""
    graph = nx.path_graph(n)
    for start in range(seed % 3, n - 6, 8):
        graph.add_edge(start, start + 5)
    return from_networkx(graph)


def awkward_batch() -> tuple[Tensor, Tensor]:
    """Edges and batch of: a directed graph with a self-loop and a duplicate, an empty entry, an isolated node
    beside a path, a single node."""
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 2), (1, 1), (0, 1), (3, 4), (5, 6), (6, 5), (6, 7), (7, 6)]
    batch = [0] * 5 + [2] * 4 + [3]
    return torch.tensor(edges).T.contiguous(), torch.tensor(batch)


def batch_of(*graphs: tuple[Tensor, int]) -> Batch:
    """A PyG batch of (edge_index, number of nodes)."""
    return Batch.from_data_list([Data(edge_index=edges, num_nodes=n) for edges, n in graphs])


def dense_adjacency(edge_index: Tensor, n: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """A[v, u] = number of edges from u to v."""
    A = torch.zeros(n, n, dtype=dtype)
    for u, v in edge_index.T.tolist():
        A[v, u] += 1
    return A
