"""Operators and the sparse product they are applied by."""

from __future__ import annotations

import pytest
import torch
from helpers.graphs import awkward_batch, dense_adjacency, random_graph
from helpers.oracle import dense_gso
from torch_geometric.utils import get_laplacian, to_dense_adj

from graphgps_pearl.pearl import SparseMatrix, graph_shift_operator
from graphgps_pearl.vocabulary import OPERATORS


@pytest.mark.parametrize("gso", OPERATORS)
def test_equals_the_dense_formula(gso: str) -> None:
    edges, batch = awkward_batch()
    n = len(batch)
    operator = graph_shift_operator(gso, edges, n, torch.float64)
    expected = dense_gso(gso, dense_adjacency(edges, n))
    torch.testing.assert_close(operator.to_dense(), expected)
    torch.testing.assert_close(operator.t().to_dense(), expected.T)
    assert bool(operator.to_dense().isfinite().all())


@pytest.mark.parametrize(("gso", "normalization"), [("laplacian", None), ("sym_laplacian", "sym")])
def test_equals_pyg_on_undirected_graphs(gso: str, normalization: str | None) -> None:
    edges, n = random_graph(12), 13  # the last node is isolated
    index, weight = get_laplacian(edges, normalization=normalization, num_nodes=n)
    expected = to_dense_adj(index, edge_attr=weight, max_num_nodes=n)[0]
    if normalization == "sym":
        assert expected[12, 12] == 1  # an isolated node's row is the identity's, here as there
    torch.testing.assert_close(graph_shift_operator(gso, edges, n).to_dense(), expected)


def test_messages_flow_from_source_to_target() -> None:
    operator = graph_shift_operator("adjacency", torch.tensor([[0], [1]]), 2)
    assert (operator @ torch.tensor([[1.0], [0.0]])).tolist() == [[0.0], [1.0]]


def test_random_walk_keeps_the_mass_and_the_normalised_adjacency_its_norm() -> None:
    edges, n = random_graph(15, 0.3, seed=4), 15
    one_way = edges[:, ::2]  # a directed part of it
    walk = graph_shift_operator("random_walk", edges, n, torch.float64).to_dense()
    torch.testing.assert_close(walk.sum(0), (walk.sum(0) > 0).double())
    for graph in (edges, one_way):
        normalised = graph_shift_operator("sym_adjacency", graph, n, torch.float64).to_dense()
        assert float(torch.linalg.matrix_norm(normalised, 2)) <= 1 + 1e-12


def test_product_and_its_gradients() -> None:
    dense = torch.randn(4, 6, dtype=torch.float64) * (torch.rand(4, 6) < 0.5)
    matrix = SparseMatrix.from_dense(dense)
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(matrix @ x, dense @ x)
    assert torch.autograd.gradcheck(lambda x: matrix @ x, x)
    assert torch.autograd.gradgradcheck(lambda x: (matrix @ x).square(), x)


@pytest.mark.parametrize(("rows", "cols", "width"), [(0, 0, 3), (3, 0, 2), (0, 3, 2), (3, 3, 0)])
def test_product_of_nothing(rows: int, cols: int, width: int) -> None:
    matrix = SparseMatrix.from_dense(torch.zeros(rows, cols))
    assert (matrix @ torch.ones(cols, width)).tolist() == torch.zeros(rows, width).tolist()


def test_half_precision_is_summed_in_float32() -> None:
    edges = random_graph(10)
    x = torch.randn(10, 4).bfloat16()
    product = graph_shift_operator("adjacency", edges, 10) @ x
    assert product.dtype == torch.float32
    torch.testing.assert_close(product, dense_adjacency(edges, 10, torch.float32) @ x.float())
