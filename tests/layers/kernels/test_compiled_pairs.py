"""The projection of pairs in compiled code equals that in torch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphgps_pearl.compiled import library
from graphgps_pearl.layers import pair_bias
from graphgps_pearl.layers.grouping import group_graphs
from graphgps_pearl.layers.kernels import compiled_pairs, pair_gather
from graphgps_pearl.packing import pack
from graphgps_pearl.switches import use_kernels

pytestmark = pytest.mark.skipif(library() is None, reason="no C++ compiler")

SIZES = torch.tensor((5, 1, 11, 3, 0, 70))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 2e-4)])
@pytest.mark.parametrize(("width", "columns"), [(8, 24), (32, 48)])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize(("cost", "layers"), [(0, 1), (100, 4), (10**9, 2)])
def test_values_and_gradients(
    dtype: torch.dtype,
    tolerance: float,
    width: int,
    columns: int,
    shared: bool,
    constant: bool,
    cost: int,
    layers: int,
) -> None:
    torch.manual_seed(0)
    pairs = int(SIZES.square().sum())
    row = torch.randint(40, (pairs,)) if shared else torch.randperm(pairs)
    rows = torch.randn(40 if shared else pairs, width, dtype=dtype, requires_grad=True)
    weight = torch.randn(2 * width, columns, dtype=dtype, requires_grad=True)
    added = torch.randn(columns, dtype=dtype, requires_grad=True) if constant else None
    groups = group_graphs(SIZES, cost).groups
    index = pair_bias.pair_index(row, rows.size(0), SIZES, groups)
    # Padded pairs have no gradient; padded keys are -inf.
    used = torch.zeros(index.padding.numel(), dtype=dtype)
    start = 0
    for group, sizes in zip(groups, index.sizes, strict=True):
        for n in sizes.tolist():
            used[start : start + group.size**2].view(group.size, group.size)[:n, :n] = 1
            start += group.size**2
    inputs = [rows, weight, *([added] if added is not None else [])]

    def run(native: bool) -> list[Tensor]:
        with use_kernels(True, native):
            assert compiled_pairs.serves(rows, weight) == native
            if native:
                out = torch.cat(compiled_pairs.project(rows, weight, added, index, layers))
            else:
                out = pair_gather.project(rows, weight, added, index)
        assert torch.equal(out == -torch.inf, (index.padding == -torch.inf).expand_as(out))
        kept = torch.where(used > 0, out, torch.zeros_like(out))
        return [kept, *torch.autograd.grad(kept.sin().sum(), inputs)]

    for a, b in zip(run(False), run(True), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_what_does_not_fit_is_left_to_torch() -> None:
    with use_kernels(True):
        assert compiled_pairs.serves(torch.ones(4, 8), torch.ones(16, 8))
        assert not compiled_pairs.serves(torch.ones(4, 7), torch.ones(14, 8))
        assert not compiled_pairs.serves(torch.ones(4, 8), torch.ones(16, 9))
        assert not compiled_pairs.serves(torch.ones(4, 8), torch.ones(16, 8).double())


@pytest.mark.parametrize("masked", [False, True])
def test_padding_is_masked_or_zero(masked: bool) -> None:
    sizes = torch.tensor([3, 2])
    rows, weight = torch.randn(13, 8, dtype=torch.float64), torch.randn(16, 8, dtype=torch.float64)
    index = pair_bias.pair_index(torch.arange(13), 13, sizes, group_graphs(sizes).groups)
    (group,) = index.groups
    padded = torch.arange(group.size) >= sizes[group.graphs].unsqueeze(1)  # [2, 3]
    for native in (False, True):
        with use_kernels(True, native):
            out = pair_gather.project(rows, weight, None, index, masked).view(8, 2, 3, 3)
        with use_kernels(False):
            expected = pair_bias.project(rows, weight, None, index, masked).view(8, 2, 3, 3)
        nodes = ~(padded.unsqueeze(1) | padded.unsqueeze(2))
        torch.testing.assert_close(out[:, nodes], expected[:, nodes], rtol=1e-9, atol=1e-9)
        keys = out.permute(1, 3, 0, 2)[padded]
        assert (keys == -torch.inf).all() if masked else keys.isfinite().all()


@pytest.mark.parametrize("shared", [False, True])
def test_an_index_for_a_device_brings_the_inverse(shared: bool) -> None:
    """Compiled code does without it, so it is not made before a GPU is sent the index."""
    sizes = torch.tensor([3, 2])
    index = pair_bias.pair_index(
        torch.zeros(13, dtype=torch.long) if shared else torch.randperm(13),
        *(1 if shared else 13, sizes, group_graphs(sizes).groups),
    )
    sent = pack(index).unpack()
    assert {"row", "padding", "inverse"} <= sent.__dict__.keys()
    if shared:
        assert sent.inverse is None
        return
    for side, inverse in enumerate(sent.inverse):
        assert torch.equal(sent.row[inverse], torch.arange(13)), side
        assert (inverse % 2 == side).all()


@pytest.mark.parametrize("num_rows", [13, 15])
@pytest.mark.parametrize("native", [False, True])
def test_as_many_rows_as_pairs_of_which_some_are_shared(num_rows: int, native: bool) -> None:
    """B-PEARL lists the pairs within reach, and one row for all others of a node."""
    sizes = torch.tensor([3, 2])
    row = torch.tensor([0, 1, 12, 3, 4, 5, 12, 7, 8, 9, 10, 11, 11])
    rows = torch.randn(num_rows, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(16, 8, dtype=torch.float64, requires_grad=True)
    index = pair_bias.pair_index(row, num_rows, sizes, group_graphs(sizes).groups)
    gradients = []
    for kernels in (True, False):
        with use_kernels(kernels, native):
            out = (pair_gather if kernels else pair_bias).project(rows, weight, None, index)
        inside = torch.where(out.isfinite(), out, 0).view(8, 2, 3, 3)
        smaller = int((index.sizes[0] == 2).nonzero())
        loss = inside[:, 1 - smaller].sin().sum() + inside[:, smaller, :2, :2].sin().sum()
        gradients.append(torch.autograd.grad(loss, (rows, weight)))
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("native", [False, True])
def test_no_second_derivatives(native: bool) -> None:
    """A gradient penalty would lack a term."""
    sizes = torch.tensor([3, 2])
    rows, weight = torch.randn(13, 8, requires_grad=True), torch.randn(16, 8, requires_grad=True)
    with use_kernels(True, native):
        index = pair_bias.pair_index(torch.arange(13), 13, sizes, group_graphs(sizes).groups)
        out = pair_gather.project(rows, weight, None, index)
        with pytest.raises(RuntimeError, match="second derivatives"):
            torch.autograd.grad(out[out.isfinite()].sum(), rows, create_graph=True)
