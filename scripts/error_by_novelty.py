"""Where the error of a trained model is: in graphs with surroundings that no training graph has.

    python scripts/error_by_novelty.py MODEL [--radius 2] [KEY VALUE ...]

    python scripts/error_by_novelty.py wehi-logp
    python scripts/error_by_novelty.py zinc-bpearl dataset.dir DIR

MODEL is what ``graphgps_pearl.load`` takes, a regression on graphs with typed nodes and edges. The
surroundings of a node to radius r are its Weisfeiler-Lehman label after r rounds, from the types of nodes and
edges. Every graph of the validation and the test split is put in a group by the share of its nodes whose
label occurs nowhere in the training split; printed is the mean absolute error of each group.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed

import graphgps_pearl
from graphgps_pearl import config, data

BOUNDS = (0.0, 0.1, 0.2, 0.3, 1.0)  # largest share of new surroundings in each group


def surroundings(graph: Data, radius: int) -> list[str]:
    """The label of every node after ``radius`` rounds."""
    made = nx.Graph()
    made.add_nodes_from((v, {"type": kind}) for v, kind in enumerate(_types(graph.x)))
    bonds = _types(graph.edge_attr) if graph.edge_attr is not None else [""] * graph.num_edges
    made.add_edges_from(
        (u, v, {"type": kind}) for (u, v), kind in zip(graph.edge_index.t().tolist(), bonds, strict=True)
    )
    if radius == 0:
        return [kind for _, kind in made.nodes(data="type")]
    labels = nx.weisfeiler_lehman_subgraph_hashes(made, node_attr="type", edge_attr="type", iterations=radius)
    return [labels[v][-1] for v in range(len(made))]


def _types(features: Tensor) -> list[str]:
    """A text for every row."""
    return [str(row) for row in features.view(features.size(0), -1).tolist()]


def share_of_new(graphs: Sequence[Data], known: set[str], radius: int) -> NDArray[np.float64]:
    """For every graph the share of its nodes whose surroundings are not ``known``."""
    return np.array([np.mean([s not in known for s in surroundings(g, radius)]) for g in graphs])


def table(share: NDArray[np.float64], error: NDArray[np.float64]) -> Iterator[tuple[str, int, float]]:
    """Groups of graphs: their share of new surroundings, how many there are, and their mean error."""
    below = -1.0
    for bound in BOUNDS:
        inside = (share > below) & (share <= bound)
        name = "none" if bound == 0 else f"up to {bound:.0%}" if bound < 1 else f"above {below:.0%}"
        if inside.any():
            yield name, int(inside.sum()), float(error[inside].mean())
        below = bound
    yield "all", len(error), float(error.mean())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table for each split."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--radius", type=int, default=2)
    parser.add_argument("overrides", nargs="*", metavar="KEY VALUE")
    args = parser.parse_intermixed_args(arguments)
    model = graphgps_pearl.load(args.model, "cpu")
    if (model.facts.task, model.facts.task_type) != ("graph", "regression"):
        parser.error(f"{args.model} is no regression on graphs: it has no absolute error")
    bundle = data.load(config.parse(config.dump(model.cfg), args.overrides))
    known = {label for graph in bundle.splits["train"] for label in surroundings(graph, args.radius)}
    print(f"{args.model}: {len(known):,} different surroundings of radius {args.radius} in training")
    for split in ("val", "test"):
        graphs = list(bundle.splits[split])
        true = bundle.in_units(graphs[0].y.new_tensor([g.y.flatten().tolist() for g in graphs])).numpy()
        error = np.abs(np.stack(model.predict_graphs(graphs)) - true).mean(axis=1)
        print(f"\n{split:<8}{'new':>9}{'graphs':>9}{'error':>9}")
        for name, count, mean in table(share_of_new(graphs, known, args.radius), error):
            print(f"{'':<8}{name:>9}{count:>9,}{mean:>9.4f}")


if __name__ == "__main__":
    main()
