"""One symmetry check for every encoding: renaming the nodes renames the rows of the result, nothing else."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}  # relative to the largest entry


def permute_nodes(data: Data, permutation: Tensor) -> Data:
    """The same graph with node v renamed ``permutation[v]``; a batch keeps each node inside its own graph."""
    permuted = data.clone()
    origin = torch.argsort(permutation)
    for name in data.keys():  # noqa: SIM118 (a Data iterates over pairs)
        if name == "edge_index":
            permuted[name] = permutation[data[name]]
        elif name not in ("batch", "ptr") and data.is_node_attr(name):
            permuted[name] = data[name][origin]
    return permuted


def random_permutation(data: Data, seed: int = 0) -> Tensor:
    """A random renaming of the nodes inside each graph."""
    n = data.num_nodes
    graph = data.batch if data.batch is not None else torch.zeros(n, dtype=torch.long)
    key = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    order = torch.argsort(graph.double() + key)  # the k-th place goes to node order[k]
    permutation = torch.empty_like(order)
    permutation[order] = torch.arange(n)
    return permutation


def assert_equivariant(
    module: Callable[[Data], Data | Tensor],
    data: Data,
    *,
    num_permutations: int = 3,
    tolerance: float | None = None,
) -> None:
    """Check f(permuted graph) = permuted f(graph) for random renamings of the nodes.

    ``module`` takes a ``Data`` or ``Batch`` and returns node rows [N, D], or an object whose ``x`` they are.
    The tolerance follows the result's dtype unless given.
    """
    expected = _rows(module(data.clone()))
    assert expected.size(0) == data.num_nodes
    bound = (tolerance or TOLERANCE[expected.dtype]) * max(1.0, float(expected.abs().max()))
    for seed in range(num_permutations):
        permutation = random_permutation(data, seed)
        actual = _rows(module(permute_nodes(data, permutation)))[permutation]
        error = float((actual - expected).abs().max())
        assert error <= bound, (
            f"renaming the nodes (seed {seed}) changes the result by {error:.3g} > {bound:.3g}"
        )


def _rows(result: Data | Tensor) -> Tensor:
    rows = result if isinstance(result, Tensor) else result.x
    return rows.detach()
