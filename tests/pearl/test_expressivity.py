"""What random weights tell apart: more than 1-WL does, at most what 2-FWL sees."""

from __future__ import annotations

import networkx as nx
import pytest
import reproduce_expressivity as expressivity

APART = ("hexagon and two triangles", "CFI pair over a 4-cycle")
ALIKE = ("rook 4x4 and Shrikhande", "CFI pair over K4")
PAIRS = expressivity.pairs_without_files()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.filterwarnings("ignore:The hashes produced:UserWarning")
def test_pairs(name: str) -> None:
    ((first, second),), _ = PAIRS[name]
    assert not nx.faster_could_be_isomorphic(first, second) or not nx.is_isomorphic(first, second)
    assert len({nx.weisfeiler_lehman_graph_hash(g, iterations=8) for g in (first, second)}) == 1
    assert set(PAIRS) == {*APART, *ALIKE}
    for seed in range(3):
        told = expressivity.pairs_told_apart(expressivity.bpearl(seed), [(first, second)])
        assert told == (name in APART)


def test_strongly_regular_parameters() -> None:
    for graph in (expressivity.rook(), expressivity.shrikhande()):
        assert nx.is_strongly_regular(graph) and len(graph) == 16 and set(dict(graph.degree).values()) == {6}


def test_no_two_connected_graphs_of_seven_nodes_are_alike() -> None:
    graphs = expressivity.atlas()
    assert len(graphs) == 853 and expressivity.alike(expressivity.bpearl(0), graphs) == 0
    again = nx.relabel_nodes(graphs[400], dict(enumerate([3, 1, 4, 6, 5, 2, 0])))
    assert expressivity.alike(expressivity.bpearl(0), [*graphs, again]) == 1


def test_random_samples_tell_a_simple_pair_apart() -> None:
    """The mean over 2,000 samples: a hexagon is not two triangles."""
    pairs, _ = PAIRS["hexagon and two triangles"]
    assert expressivity.random_pairs_told_apart(pairs, 8, 2000, 0) == 1


def test_files_of_pairs(tmp_path) -> None:  # type: ignore[no-untyped-def]
    graphs = [nx.cycle_graph(6), nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))]
    lines = [str(len(graphs))]
    for graph in graphs:
        lines.append(f"{len(graph)} 1")
        lines += [f"0 {graph.degree[v]} " + " ".join(map(str, graph[v])) for v in sorted(graph)]
    (tmp_path / "GRAPHSAT.txt").write_text("\n".join(lines) + "\n")
    read = expressivity.read_graphsat(tmp_path / "GRAPHSAT.txt")
    assert [nx.utils.graphs_equal(a, b) for a, b in zip(read, graphs, strict=True)] == [True, True]
