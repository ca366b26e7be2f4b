"""Checks for modules on graphs, for tests of your own: renaming nodes and batching must change nothing else.

Both take a module that maps a PyG ``Data`` or ``Batch`` to node rows [N, D], to an object whose ``x`` they
are, or, for :func:`assert_batch_invariant`, to one row per graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

#: Largest error allowed, relative to the largest entry.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}


def permute_nodes(data: Data, permutation: Tensor) -> Data:
    """The same graph with node v renamed ``permutation[v]``; a batch keeps each node inside its own graph."""
    permuted = data.clone()
    origin = torch.argsort(permutation)
    for name in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        if name == "edge_index":
            permuted[name] = permutation[data[name]]
        elif name not in ("batch", "ptr") and data.is_node_attr(name):
            value = data[name]
            permuted[name] = (
                type(value)(value[v] for v in origin.tolist())
                if isinstance(value, list | tuple)
                else value[origin]
            )
    return permuted


def random_permutation(data: Data, seed: int = 0) -> Tensor:
    """A random renaming of the nodes inside each graph, [N]."""
    n = int(data.num_nodes or 0)
    device = data.edge_index.device
    graph = data.batch if data.batch is not None else torch.zeros(n, dtype=torch.long, device=device)
    key = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(device)
    order = torch.argsort(graph.double() + key)  # node order[k] becomes node k
    permutation = torch.empty_like(order)
    permutation[order] = torch.arange(n, device=device)
    return permutation


def assert_equivariant(
    module: Callable[[Any], Any],
    data: Data,
    *,
    num_permutations: int = 3,
    tolerance: float | None = None,
) -> None:
    """Check f(permuted graph) = permuted f(graph) for random renamings of the nodes.

    Args:
        module: f, in evaluation mode if it is random in training.
        data: a graph or a batch; f gets copies of it.
        num_permutations: how many renamings to try.
        tolerance: relative to the largest entry; None = 1e-9 in float64, 1e-4 in float32.
    """
    expected = _rows(module(data.clone()))
    assert expected.size(0) == data.num_nodes, f"{expected.size(0)} rows for {data.num_nodes} nodes"
    for seed in range(num_permutations):
        permutation = random_permutation(data, seed)
        actual = _rows(module(permute_nodes(data, permutation)))[permutation]
        _assert_close(actual, expected, tolerance, f"renaming the nodes (seed {seed})")


def assert_batch_invariant(
    module: Callable[[Any], Any], graphs: Sequence[Data], *, tolerance: float | None = None
) -> None:
    """Check that f of a batch is f of each graph alone, one after the other.

    Args:
        module: f, in evaluation mode if it has batch norms or dropout. It may give node rows or graph rows.
        graphs: the graphs; f gets copies of them.
        tolerance: relative to the largest entry; None = 1e-9 in float64, 1e-4 in float32.
    """
    together = _rows(module(Batch.from_data_list([graph.clone() for graph in graphs])))
    alone = [_rows(module(Batch.from_data_list([graph.clone()]))) for graph in graphs]
    _assert_close(torch.cat(alone), together, tolerance, "batching the graphs")
    reverse = [graph.clone() for graph in reversed(graphs)]
    _assert_close(
        torch.cat(alone[::-1]),
        _rows(module(Batch.from_data_list(reverse))),
        tolerance,
        "reversing the batch",
    )


def _assert_close(actual: Tensor, expected: Tensor, tolerance: float | None, what: str) -> None:
    assert actual.shape == expected.shape, f"{what} changes the shape: {actual.shape}, not {expected.shape}"
    if not expected.numel():
        return
    relative = TOLERANCE[expected.dtype] if tolerance is None else tolerance
    bound = relative * float(expected.abs().max())
    if tolerance is None:  # what should be zero is rounded by more than its own size
        bound = max(bound, 10 * torch.finfo(expected.dtype).eps)
    error = float((actual - expected).abs().max())
    assert error <= bound, f"{what} changes the result by {error:.3g} > {bound:.3g}"


def _rows(result: Any) -> Tensor:
    rows = result if isinstance(result, Tensor) else result[0] if isinstance(result, tuple) else result.x
    return rows.detach()
