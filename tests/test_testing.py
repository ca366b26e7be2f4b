"""The public checks find what they are for, and pass what is right."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import batch_of, graphs
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool

from graphgps_pearl.pearl import BPEARL
from graphgps_pearl.testing import assert_batch_invariant, assert_equivariant, permute_nodes


def _degree(data: Data) -> torch.Tensor:
    return torch.bincount(data.edge_index[1], minlength=data.num_nodes).double().unsqueeze(1)


def test_what_is_right_passes() -> None:
    torch.manual_seed(0)
    encoding = BPEARL(4, 8, 2).double().eval()

    def encode(data: Data) -> torch.Tensor:
        return encoding(data.edge_index, data.batch, data.num_nodes)

    assert_equivariant(encode, batch_of(graphs()))
    assert_equivariant(encode, graphs()[0])
    assert_batch_invariant(encode, graphs())
    assert_batch_invariant(lambda data: global_add_pool(_degree(data), data.batch, data.num_graphs), graphs())
    assert_batch_invariant(lambda data: (_degree(data), data.y), graphs())


def test_what_depends_on_the_names_of_nodes_is_found() -> None:
    def numbered(data: Data) -> torch.Tensor:
        return _degree(data) + 1e-6 * torch.arange(data.num_nodes).unsqueeze(1)

    with pytest.raises(AssertionError, match="renaming the nodes"):
        assert_equivariant(numbered, graphs()[0])
    assert_equivariant(numbered, graphs()[0], tolerance=1e-2)
    with pytest.raises(AssertionError, match="renaming the nodes"):  # zero is not "by the precision"
        assert_equivariant(lambda data: 1e-6 * numbered(data), graphs()[0], tolerance=0)
    with pytest.raises(AssertionError, match="1 rows for 9 nodes"):
        assert_equivariant(lambda data: _degree(data).sum(0, keepdim=True), graphs()[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_small_results_are_compared_by_their_own_size(dtype: torch.dtype) -> None:
    def numbered(data: Data) -> torch.Tensor:
        return 1e-5 * torch.arange(data.num_nodes, dtype=dtype).unsqueeze(1)

    with pytest.raises(AssertionError, match="renaming the nodes"):
        assert_equivariant(numbered, graphs()[0])
    noise = torch.finfo(dtype).eps  # of what would be zero without rounding
    assert_equivariant(lambda data: noise * torch.rand(data.num_nodes, 1, dtype=dtype), graphs()[0])


def test_what_depends_on_the_batch_is_found() -> None:
    with pytest.raises(AssertionError, match="batching the graphs"):
        assert_batch_invariant(lambda data: _degree(data) - _degree(data).mean(), graphs())
    with pytest.raises(AssertionError, match="shape"):
        assert_batch_invariant(lambda data: _degree(data)[:2], graphs())


def test_lists_of_nodes_are_renamed_too() -> None:
    path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, names=["a", "b", "c"])
    permuted = permute_nodes(path, torch.tensor([2, 0, 1]))
    assert permuted.names == ["b", "c", "a"]
    assert permuted.edge_index.tolist() == [[2, 0], [0, 1]]
