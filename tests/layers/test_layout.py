"""Packed and dense forms of a batch, against PyG's."""

from __future__ import annotations

import pytest
import torch
from helpers.packed_graphs import packed_graphs
from torch_geometric.utils import to_dense_batch

from graphgps_pearl.layers import Layout, squared_distance


@pytest.mark.parametrize("sizes", [(5, 1, 9, 3), (4, 4, 4), (6,), (1, 1)])
def test_dense_form_is_pygs(sizes: tuple[int, ...]) -> None:
    graphs = packed_graphs(sizes)
    layout = graphs.layout()
    dense, _ = to_dense_batch(graphs.x, graphs.index)
    assert torch.equal(layout.to_dense(graphs.x), dense)
    assert torch.equal(layout.to_packed(dense), graphs.x)


@pytest.mark.parametrize("shape", [(), (3,), (2, 4)])
def test_rows_of_any_shape_come_back(shape: tuple[int, ...]) -> None:
    rows = torch.randn(8, *shape)
    layout = Layout.of(torch.tensor([0, 0, 0, 1, 1, 1, 1, 1]))
    assert layout.to_dense(rows).shape == (2, 5, *shape)
    assert torch.equal(layout.to_packed(layout.to_dense(rows)), rows)


def test_graphs_without_nodes_keep_their_place() -> None:
    layout = Layout.of(torch.tensor([1, 1, 3]), num_graphs=5)
    dense = layout.to_dense(torch.tensor([1.0, 2.0, 3.0]))
    assert dense.tolist() == [[0, 0], [1, 2], [0, 0], [3, 0], [0, 0]]
    assert layout.sizes.tolist() == [0, 2, 0, 1, 0]


def test_the_cache_computes_again_only_for_another_source() -> None:
    layout, calls = Layout.of(torch.tensor([0, 0])), []
    first, second = torch.zeros(1), torch.zeros(1)
    for source in (first, first, second, second):
        layout.cached("name", source, lambda: calls.append(1))
    assert len(calls) == 2


def test_squared_distance_runs_over_the_edges() -> None:
    position = torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 0.0]])
    edges = torch.tensor([[0, 1, 2], [1, 2, 2]])
    assert squared_distance(position, edges).tolist() == [[25.0], [16.0], [0.0]]


@pytest.mark.parametrize("num_graphs", [None, 2])
def test_nodes_of_graphs_that_are_mixed_are_refused(num_graphs: int | None) -> None:
    with pytest.raises(ValueError, match="batch must be sorted"):
        Layout.of(torch.tensor([0, 1, 0]), num_graphs)
