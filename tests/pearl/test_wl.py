"""Graphs that 1-WL, and so any plain message passing, cannot tell apart."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from helpers.graphs import from_networkx
from torch import Tensor

from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.pearl.graphs import check_graphs
from graphgps_pearl.pearl.rows import Operators, SampleRows


def joined_rings(size: int, fused: bool) -> nx.Graph:
    """Two rings that share an edge, or two smaller rings joined by one: the same 1-WL colours."""
    if fused:  # decalin, two six-rings
        graph = nx.cycle_graph(2 * size)
        graph.add_edge(0, size)
        return graph
    graph = nx.disjoint_union(nx.cycle_graph(size), nx.cycle_graph(size))  # bicyclopentyl
    graph.add_edge(0, size)
    return graph


PAIRS = {
    "hexagon and two triangles": (nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))),
    "decalin and bicyclopentyl": (joined_rings(5, fused=True), joined_rings(5, fused=False)),
}


@torch.no_grad()
def multiset(module: BPEARL | RPEARL, graph: nx.Graph) -> Tensor:
    return module(from_networkx(graph)).sum(0)


@pytest.mark.filterwarnings("ignore:The hashes produced:UserWarning")
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_pair_told_apart(pair: tuple[nx.Graph, nx.Graph]) -> None:
    colours = [nx.weisfeiler_lehman_graph_hash(graph, iterations=12) for graph in pair]
    assert colours[0] == colours[1]
    torch.manual_seed(0)
    basis = BPEARL(dim_pe=8, hidden_dim=16, num_layers=4).double().eval()

    constants = []
    for graph in pair:  # the same network as plain message passing: every node starts alike
        rows = SampleRows(Operators(check_graphs(from_networkx(graph)), basis.gso, torch.float64), 1)
        ones = torch.ones(graph.number_of_nodes(), 1, dtype=torch.float64)
        constants.append(basis.phi(ones, rows).sum(0))
    torch.testing.assert_close(*constants, rtol=1e-12, atol=1e-12)

    a, b = (multiset(basis, graph) for graph in pair)
    assert float((a - b).norm() / a.norm()) > 1e-3


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_pair_told_apart_by_random_samples(pair: tuple[nx.Graph, nx.Graph]) -> None:
    torch.manual_seed(0)
    module = RPEARL(
        dim_pe=8, num_samples=4000, hidden_dim=16, num_layers=1, num_taps=6, norm="none", skip="none"
    )
    module.double().eval()
    tables = []
    for module.eval_seed in range(6):
        tables.append(torch.stack([multiset(module, graph) for graph in pair]))
    a, b = torch.stack(tables).unbind(1)  # [tables, dim_pe]
    difference = (a - b).mean(0)
    noise = (a - b).std(0) / len(tables) ** 0.5
    assert float((difference.abs() / noise).max()) > 10
