"""Suites of the encodings alone: on batches of molecules (pe) and on one large graph (scale)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from baselines import eigenvectors
from baselines.padded_pearl import PaddedPEARL, sym_laplacian
from torch_geometric.data import Batch, Data

from graphgps_pearl.pearl import BPEARL, RPEARL
from suites.case import Case, Step
from suites.graphs import load_graphs, random_edges

AUTHORS: dict[str, dict[str, Any]] = {  # layer sizes of the paper's code
    "zinc": {"dim_pe": 37, "hidden_dim": 40, "num_layers": 8, "mlp_layers": 3, "mlp_hidden": 105},
    "peptides": {"dim_pe": 37, "hidden_dim": 37, "num_layers": 9, "mlp_layers": 2, "mlp_hidden": 120},
}
TOY: dict[str, Any] = {"dim_pe": 4, "hidden_dim": 4, "num_layers": 2, "mlp_layers": 2, "mlp_hidden": 4}
DENSE_NODES = 5_000  # of the largest graph whose dense Laplacian is decomposed


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
    """R-PEARL on one large graph, forward + backward in chunks, against eigenvectors."""
    for nodes in (100,) if args.toy else args.nodes:
        case = f"R-PEARL, random graph of {nodes:,} nodes, against"
        large = partial(_large, nodes, 2 if args.toy else 20)
        yield Case("scale", f"{case} Lanczos (8 eigenvectors)", large, partial(_few, nodes))
        if nodes <= DENSE_NODES:
            yield Case("scale", f"{case} dense eigh", large, partial(_all, nodes))


def _large(nodes: int, num_samples: int) -> Step:
    edges = random_edges(nodes)
    pe = RPEARL(dim_pe=16, hidden_dim=40, num_layers=5, num_samples=num_samples, norm="layer", chunk_size=1)
    return lambda: pe(edges, num_nodes=nodes).sum().backward()


def _few(nodes: int) -> Step:
    return eigenvectors.lanczos([(random_edges(nodes), nodes)], inverse=False)


def _all(nodes: int) -> Step:
    return eigenvectors.dense([(random_edges(nodes), nodes)])
