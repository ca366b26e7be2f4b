"""Which graphs B-PEARL and R-PEARL with random weights tell apart.

    python scripts/reproduce_expressivity.py [FILE ...] [--samples 6000] [--pairs 20] [--seed 0]

Without files: the graphs that need none. A file is a list of graphs in graph6 format (``graph8c.g6``,
``sr251256.g6``: every graph against every other), or EXP's and CEXP's ``GRAPHSAT.txt`` (pairs that stand next
to each other). Graphs are anonymous: types of nodes are not read. Two graphs are told apart if the sums over
their nodes differ by more than 1e-9 of their size, in float64; for R-PEARL, whose values are random, by more
than six standard errors.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

import networkx as nx
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed

from graphgps_pearl.pearl import BPEARL, RPEARL

Pair = tuple[nx.Graph, nx.Graph]
TAPS = 8
DRAWS = 20


def rook() -> nx.Graph:
    """The 4 x 4 rook's graph: strongly regular (16, 6, 2, 2)."""
    return nx.convert_node_labels_to_integers(nx.line_graph(nx.complete_bipartite_graph(4, 4)))


def shrikhande() -> nx.Graph:
    """The Shrikhande graph: strongly regular with the same parameters as the 4 x 4 rook's graph."""
    steps = ((0, 1), (1, 0), (1, 1))
    graph = nx.Graph()
    for x in range(4):
        for y in range(4):
            graph.add_edges_from(((x, y), ((x + dx) % 4, (y + dy) % 4)) for dx, dy in steps)
    return nx.convert_node_labels_to_integers(graph)


def cfi(base: nx.Graph, twisted: bool) -> nx.Graph:
    """The graph of Cai, Fürer and Immerman over ``base``, or its twin with one edge twisted.

    A node for every even set of edges at a node of ``base``, two for every end of an edge, joined by whether
    the edge is in the set. The twins are alike to k-FWL where the treewidth of ``base`` is above k.
    """
    graph = nx.Graph()
    first = next(iter(base.edges))
    for v in base:
        around = sorted(tuple(sorted(edge)) for edge in base.edges(v))
        for size in range(0, len(around) + 1, 2):
            for chosen in combinations(around, size):
                for edge in around:
                    graph.add_edge(("set", v, chosen), ("end", v, edge, edge in chosen))
    for edge in base.edges:
        name = tuple(sorted(edge))
        for side in (False, True):
            other = side ^ (twisted and edge == first)
            graph.add_edge(("end", name[0], name, side), ("end", name[1], name, other))
    return nx.convert_node_labels_to_integers(graph)


def pairs_without_files() -> dict[str, tuple[list[Pair], str]]:
    """Pairs by name, with what is known of them."""
    two_triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    cycle, clique = nx.cycle_graph(4), nx.complete_graph(4)
    return {
        "hexagon and two triangles": ([(nx.cycle_graph(6), two_triangles)], "1-WL: alike"),
        "CFI pair over a 4-cycle": (
            [(cfi(cycle, False), cfi(cycle, True))],
            "1-WL: alike",
        ),
        "rook 4x4 and Shrikhande": ([(rook(), shrikhande())], "2-FWL: alike"),
        "CFI pair over K4": ([(cfi(clique, False), cfi(clique, True))], "2-FWL: alike"),
    }


def atlas() -> list[nx.Graph]:
    """All 853 connected graphs of seven nodes."""
    return [g for g in nx.graph_atlas_g() if len(g) == 7 and nx.is_connected(g)]


def read_graphsat(file: Path) -> list[nx.Graph]:
    """Graphs of EXP and CEXP: a line "nodes label", then for every node its type, degree and neighbours."""
    lines = iter(file.read_text().splitlines())
    graphs = []
    for _ in range(int(next(lines))):
        nodes = int(next(lines).split()[0])
        graph = nx.empty_graph(nodes)
        for v in range(nodes):
            graph.add_edges_from((v, int(u)) for u in next(lines).split()[2:])
        graphs.append(graph)
    return graphs


def batch_of(graphs: Iterable[nx.Graph]) -> Batch:
    """The bare graphs."""
    data = []
    for graph in graphs:
        pairs = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
        data.append(Data(edge_index=torch.cat((pairs, pairs.flip(0)), 1), num_nodes=len(graph)))
    return Batch.from_data_list(data)


def bpearl(seed: int, num_taps: int = TAPS) -> BPEARL:
    """Random weights: random-walk taps and three GIN layers."""
    torch.manual_seed(seed)
    return BPEARL(8, 16, 3, num_taps, gso="random_walk", norm="layer", act="silu").double().eval()


@torch.no_grad()
def graph_values(module: BPEARL | RPEARL, graphs: Sequence[nx.Graph], at_once: int = 256) -> Tensor:
    """Sums over the nodes of every graph of the encoding and of its square, [graphs, 2 dim_pe]."""
    values = []
    for start in range(0, len(graphs), at_once):
        batch = batch_of(graphs[start : start + at_once])
        pe = module(batch.edge_index, batch.batch, batch.num_nodes)
        pe = torch.cat((pe, pe.square()), 1)
        values.append(pe.new_zeros(batch.num_graphs, pe.size(1)).index_add_(0, batch.batch, pe))
    return torch.cat(values)


def differ(first: Tensor, second: Tensor) -> Tensor:
    """Which rows of two tables of values are different."""
    size = torch.maximum(first.abs(), second.abs()).amax(1).clamp(min=1e-30)
    return (first - second).abs().amax(1) / size > 1e-9


def pairs_told_apart(module: BPEARL, pairs: Sequence[Pair]) -> int:
    """How many of the pairs are told apart."""
    first, second = (graph_values(module, [pair[side] for pair in pairs]) for side in (0, 1))
    return int(differ(first, second).sum())


def alike(module: BPEARL, graphs: Sequence[nx.Graph]) -> int:
    """How many graphs have the values of another one: neighbours in the order of a random combination."""
    values = graph_values(module, graphs)
    order = (values @ torch.randn(values.size(1), dtype=values.dtype)).argsort()
    values = values[order]
    return int((~differ(values[1:], values[:-1])).sum())


def random_pairs_told_apart(pairs: Sequence[Pair], num_taps: int, samples: int, seed: int) -> int:
    """How many of the pairs R-PEARL tells apart, by the mean over draws against its standard error."""
    torch.manual_seed(seed)
    module = RPEARL(
        8, samples // DRAWS, 16, 3, num_taps, gso="random_walk", norm="layer", act="silu"
    ).double()
    draws = []
    for draw in range(DRAWS):
        sides = []
        for side in (0, 1):
            module.eval_seed = 2 * (DRAWS * seed + draw) + side  # each graph has draws of its own
            sides.append(graph_values(module.eval(), [pair[side] for pair in pairs]))
        draws.append(sides)
    values = torch.stack([torch.stack(sides) for sides in draws])  # [draws, 2, pairs, columns]
    error = (values.var(0).sum(0) / DRAWS).sqrt().clamp(min=1e-30)
    score = (values[:, 0] - values[:, 1]).mean(0).abs() / error
    return int((score.amax(1) > 6).sum())


def main(arguments: list[str] | None = None) -> dict[str, int]:
    """Print and return how many pairs are told apart, or how many graphs are alike, by name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="graph6 files, or GRAPHSAT.txt of EXP or CEXP")
    parser.add_argument("--samples", type=int, default=6000, help="samples of R-PEARL (default 6000)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs that R-PEARL is tried on (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default 0)")
    options = parser.parse_args(arguments)
    module, found = bpearl(options.seed), {}
    for name, (pairs, known) in pairs_without_files().items():
        found[name] = pairs_told_apart(module, pairs)
        print(f"{name}: {found[name]} of {len(pairs)} told apart ({known})")
    graphs = atlas()
    found["atlas"] = alike(module, graphs)
    print(f"connected graphs of 7 nodes: {found['atlas']} of {len(graphs)} like another one")
    for file in options.files:
        if file.suffix == ".g6":
            graphs = nx.read_graph6(file)
            found[file.name] = alike(module, graphs)
            print(f"{file.name}: {found[file.name]} of {len(graphs)} graphs like another one", flush=True)
            continue
        graphs = read_graphsat(file)
        pairs = list(zip(graphs[::2], graphs[1::2], strict=True))
        found[file.name] = pairs_told_apart(module, pairs)
        print(f"{file}: {found[file.name]} of {len(pairs)} pairs told apart", flush=True)
        for num_taps in (1, TAPS):
            some = pairs[: options.pairs]
            found[f"{file.name}, R-PEARL, K = {num_taps}"] = count = random_pairs_told_apart(
                some, num_taps, options.samples, options.seed
            )
            print(
                f"{file}: {count} of {len(some)} by R-PEARL, K = {num_taps}, {options.samples} samples",
                flush=True,
            )
    return found


if __name__ == "__main__":
    main()
