"""Counts of cycles and cliques: exact, bounded on hostile graphs, keyed by their settings."""

from __future__ import annotations

from itertools import combinations, permutations

import networkx as nx
import pytest
import torch
from helpers.encoding_cases import encoder_config, graph, graphs
from torch_geometric.utils import from_networkx

from graphgps_pearl.data.stages import _Parts
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.encoders.gsn import AddSubgraphCounts, subgraph_counts
from graphgps_pearl.errors import ConfigError, DataError


def edges(g: nx.Graph) -> torch.Tensor:
    return from_networkx(nx.convert_node_labels_to_integers(g)).edge_index.reshape(2, -1)


def cycles_by_brute_force(g: nx.Graph, size: int) -> list[int]:
    """Closed orders of ``size`` different nodes; each cycle is 2 * size of them, two of which begin here."""
    counts = [0] * len(g)
    for nodes in permutations(g, size):
        if all(g.has_edge(u, v) for u, v in zip(nodes, (*nodes[1:], nodes[0]), strict=True)):
            counts[nodes[0]] += 1
    return [count // 2 for count in counts]


def cliques_by_brute_force(g: nx.Graph, size: int) -> list[int]:
    counts = [0] * len(g)
    for nodes in combinations(g, size):
        if all(g.has_edge(u, v) for u, v in combinations(nodes, 2)):
            for node in nodes:
                counts[node] += 1
    return counts


@pytest.mark.parametrize(
    "g",
    [
        nx.gnp_random_graph(8, 0.5, seed=1),
        nx.gnp_random_graph(8, 0.8, seed=2),
        nx.complete_graph(7),
        nx.complete_bipartite_graph(3, 4),
        nx.disjoint_union(nx.cycle_graph(5), nx.star_graph(2)),
    ],
    ids=str,
)
def test_counts_are_those_of_brute_force(g: nx.Graph) -> None:
    counts = subgraph_counts(edges(g), len(g), max_cycle=8, max_clique=5)
    assert counts.shape == (len(g), 9)
    for size in range(3, 9):
        assert counts[:, size - 3].tolist() == cycles_by_brute_force(g, size), size
    for size in range(3, 6):
        assert counts[:, 3 + size].tolist() == cliques_by_brute_force(g, size), size


def test_directions_loops_and_repeats_do_not_count() -> None:
    ring = edges(nx.cycle_graph(6))
    one_way = ring[:, ring[0] < ring[1]]
    messy = torch.cat([ring, ring, torch.tensor([[2], [2]])], dim=1)
    for other in (one_way, messy):
        assert torch.equal(subgraph_counts(other, 6), subgraph_counts(ring, 6))
    assert subgraph_counts(ring, 6).sum(0).tolist() == [0, 0, 0, 6, 0, 0]


def test_graphs_without_cycles_are_zero() -> None:
    for data in graphs():
        assert subgraph_counts(data.edge_index, data.num_nodes, 8, 5).shape == (data.num_nodes, 9)
    assert not subgraph_counts(edges(nx.star_graph(5000)), 5001, 8, 5).any()


def test_hostile_graphs_are_refused_in_one_line_that_names_the_graph() -> None:
    dense = nx.complete_graph(80)
    for settings, key in (((8, 0), "max_cycle"), ((0, 5), "max_clique")):
        table = GraphTable.from_graphs([graph(edges(nx.path_graph(3)), 3), graph(edges(dense), 80)])
        parts = _Parts(table, [AddSubgraphCounts("GSN", *settings)], "thing")
        assert parts.graph(0).pestat_GSN.sum() == 0
        with pytest.raises(DataError, match=rf"graph 1 of thing .*posenc_GSN\.{key}") as error:
            parts.graph(1)
        assert "\n" not in str(error.value)


def test_a_hub_of_thousands_has_its_cliques_counted() -> None:
    """A wheel of REDDIT's size: the rim's triangles are all through the hub."""
    counts = subgraph_counts(edges(nx.wheel_graph(3000)), 3000, max_cycle=0, max_clique=5)
    assert counts[0].tolist() == [2999, 0, 0] and counts[1].tolist() == [2, 0, 0]


def test_the_text_names_every_setting() -> None:
    settings = [("GSN", 8, 0), ("G", 8, 0), ("GSN", 7, 0), ("GSN", 8, 3)]
    texts = {repr(AddSubgraphCounts(*values)) for values in settings}
    assert len(texts) == 4 and all("version=" in text for text in texts)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("posenc_GSN.max_cycle", 2), "posenc_GSN.max_cycle.*from 3 to 8"),
        (("posenc_GSN.max_clique", 6), "posenc_GSN.max_clique.*<= 5"),
        (("posenc_GSN.max_cycle", 0, "posenc_GSN.max_clique", 0), "nothing would be counted"),
    ],
)
def test_settings_that_count_nothing_or_too_much(overrides: tuple[object, ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        encoder_config("TypeDictNode+GSN", *overrides)
