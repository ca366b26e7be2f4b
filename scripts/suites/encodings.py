"""Suites of the encodings alone: on batches of molecules (pe) and on one large graph (scale)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from baselines import eigenvectors
from baselines.padded_pearl import PaddedPEARL, sym_laplacian
from torch import Tensor
from torch_geometric.data import Batch, Data

from graphgps_pearl.encoders.transforms import random_walk_diagonal
from graphgps_pearl.pearl import BPEARL, RPEARL
from suites.case import Case, Curve, Step
from suites.graphs import irregular_chain, load_graphs, random_edges

Edges = Callable[[], Tensor]

AUTHORS: dict[str, dict[str, Any]] = {  # layer sizes of the paper's code
    "zinc": {"dim_pe": 37, "hidden_dim": 40, "num_layers": 8, "mlp_layers": 3, "mlp_hidden": 105},
    "peptides": {"dim_pe": 37, "hidden_dim": 37, "num_layers": 9, "mlp_layers": 2, "mlp_hidden": 120},
}
TOY: dict[str, Any] = {"dim_pe": 4, "hidden_dim": 4, "num_layers": 2, "mlp_layers": 2, "mlp_hidden": 4}


def pe_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """Forward + backward against padded rows; forward alone against eigenvectors, which are not trained."""
    batch_of = {"zinc": 128, "peptides": args.peptides_batch}
    for kind, num_taps in (("zinc", 7), ("peptides", 1)):
        sizes = (TOY if args.toy else AUTHORS[kind]) | {"num_taps": num_taps}
        graphs = load_graphs(kind, 4 if args.toy else batch_of[kind], args.data)
        batch = Batch.from_data_list(graphs)
        bare = [(graph.edge_index, int(graph.num_nodes or 0)) for graph in graphs]
        small = sum(eigenvectors.too_small(n) for _, n in bare)
        yield f"pe, {kind}: {small} of {len(bare)} graphs are too small for Lanczos and go through eigh"
        for encoding, samples in (("B-PEARL", None), ("R-PEARL", 2 if args.toy else 20)):
            case = f"{encoding}, {kind}, batch {len(graphs)}, K = {num_taps}"
            fast = partial(_fast, batch, samples, sizes)
            yield Case("pe", case, fast, partial(_padded, graphs, batch, samples, sizes))
            forward = partial(_fast, batch, samples, sizes, backward=False)
            for method, baseline in (
                ("dense eigh of every graph", partial(eigenvectors.dense, bare)),
                ("Lanczos (8 eigenvectors)", partial(eigenvectors.lanczos, bare, inverse=True)),
            ):
                yield Case("pe", f"{case}, forward, against {method}", forward, baseline, memory=False)


def _fast(batch: Batch, num_samples: int | None, sizes: dict[str, Any], backward: bool = True) -> Step:
    pe: BPEARL | RPEARL
    if num_samples is None:
        pe = BPEARL(**sizes, skip="none")
    else:
        pe = RPEARL(**sizes, skip="none", num_samples=num_samples)
    if backward:
        return lambda: pe(batch.edge_index, batch.batch).sum().backward()
    return torch.no_grad()(lambda: pe(batch.edge_index, batch.batch))


def _padded(graphs: list[Data], batch: Batch, num_samples: int | None, sizes: dict[str, Any]) -> Step:
    laplacians = [sym_laplacian(graph.edge_index, int(graph.num_nodes or 0)) for graph in graphs]
    pe = PaddedPEARL(**sizes, num_samples=num_samples)
    return lambda: pe(batch.edge_index, laplacians).sum().backward()


def scale_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """One graph of N nodes: R-PEARL in chunks against the others.

    Eigenvectors and return probabilities, computed once for a graph, meet R-PEARL's evaluation; B-PEARL meets
    its training step.
    """
    for number, (family, make) in enumerate(FAMILIES.items()):
        for nodes in (100,) if args.toy else args.nodes:
            edges, samples = partial(make, nodes), 2 if args.toy else 20
            ours = {
                line: partial(_large, edges, nodes, samples, line == TRAINED) for line in (TRAINED, EVALUATED)
            }
            for name, (other, line, largest) in OTHERS.items():
                if nodes > largest[number]:
                    continue
                case = f"{line}, {family}, {nodes:,} nodes, against {name}"
                curve = Curve(family, line, name, nodes)
                theirs = ours[EVALUATED] if other is None else partial(other, edges, nodes)
                yield Case("scale", case, ours[line], theirs, once=nodes >= LONG, curve=curve)


LONG = 100_000  # nodes of a graph that is measured once
SIZES: dict[str, Any] = {"dim_pe": 16, "hidden_dim": 40, "num_layers": 5, "norm": "layer"}
FAMILIES = {"chain with rings": irregular_chain, "random graph": random_edges}


def _large(edges: Edges, nodes: int, num_samples: int, trained: bool) -> Step:
    edge_index = edges()
    pe = RPEARL(**SIZES, num_samples=num_samples, chunk_size=1).train(trained)
    if trained:
        return lambda: pe(edge_index, num_nodes=nodes).sum().backward()
    return torch.no_grad()(lambda: pe(edge_index, num_nodes=nodes))


def _every_pair(edges: Edges, nodes: int) -> Step:
    edge_index = edges()
    pe = BPEARL(**SIZES)
    return lambda: pe(edge_index, num_nodes=nodes).sum().backward()


def _few(edges: Edges, nodes: int) -> Step:
    edge_index = edges()
    # Iterating with the inverse: it stays sparse on a chain, and on a chain nothing else converges.
    return eigenvectors.lanczos([(edge_index, nodes)], inverse=edge_index.size(1) < 3 * nodes)


def _all(edges: Edges, nodes: int) -> Step:
    return eigenvectors.dense([(edges(), nodes)])


def _return_probabilities(edges: Edges, nodes: int) -> Step:
    edge_index = edges()
    return lambda: random_walk_diagonal(edge_index, nodes, range(1, 21))


TRAINED, EVALUATED = "R-PEARL", "R-PEARL, evaluation"
# Each with what it is measured against, and the nodes of the largest chain and of the largest random graph;
# above, 8 GB or some minutes are not enough.
OTHERS: dict[str, tuple[Callable[[Edges, int], Step] | None, str, tuple[int, int]]] = {
    EVALUATED: (None, TRAINED, (1_000_000, 1_000_000)),
    "B-PEARL": (_every_pair, TRAINED, (10_000, 3_000)),
    "LapPE (8 by Lanczos)": (_few, EVALUATED, (10_000, 1_000_000)),
    "LapPE (all, dense eigh)": (_all, EVALUATED, (3_000, 3_000)),
    "RWSE (20 steps)": (_return_probabilities, EVALUATED, (3_000, 3_000)),
}
