"""Attention against torch's and PyG's own modules, and its indifference to padding."""

from __future__ import annotations

import pytest
import torch
from helpers.half_sums import RefuseHalfSums
from helpers.packed_graphs import packed_graphs
from torch_geometric.nn.attention import PerformerAttention
from torch_geometric.utils import to_dense_batch

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import Layout, LinearAttention, MultiheadAttention


def test_same_seed_gives_torchs_weights() -> None:
    torch.manual_seed(3)
    torchs = torch.nn.MultiheadAttention(12, 3, batch_first=True)
    torch.manual_seed(3)
    ours = MultiheadAttention(12, 3)
    assert ours.state_dict().keys() == torchs.state_dict().keys()
    assert all(torch.equal(value, torchs.state_dict()[name]) for name, value in ours.state_dict().items())


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("sizes", [(5, 1, 9, 3), (4, 4)])
def test_equals_torchs_attention(sizes: tuple[int, ...], with_bias: bool) -> None:
    graphs, heads = packed_graphs(sizes, dim=12), 3
    torchs = torch.nn.MultiheadAttention(12, heads, batch_first=True).double()
    torch.nn.init.normal_(torchs.in_proj_bias)
    ours = MultiheadAttention(12, heads).double()
    ours.load_state_dict(torchs.state_dict())
    dense, mask = to_dense_batch(graphs.x, graphs.index)
    n = dense.size(1)
    bias = torch.randn(len(sizes), heads, n, n, dtype=torch.float64) if with_bias else None

    ignored = torch.zeros(mask.shape, dtype=dense.dtype).masked_fill(~mask, -torch.inf)
    expected = torchs(
        dense,
        dense,
        dense,
        key_padding_mask=ignored,
        attn_mask=None if bias is None else bias.flatten(0, 1),
        need_weights=False,
    )[0][mask]
    actual = ours(graphs.x, graphs.layout(), bias)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
    expected_grad = torch.autograd.grad(expected.sin().sum(), torchs.in_proj_weight)[0]
    actual_grad = torch.autograd.grad(actual.sin().sum(), ours.in_proj_weight)[0]
    torch.testing.assert_close(actual_grad, expected_grad, rtol=1e-10, atol=1e-10)


def test_bias_at_padding_is_ignored_and_gets_no_gradient() -> None:
    graphs = packed_graphs((4, 2), dim=8)
    attention = MultiheadAttention(8, 2).double()
    bias = torch.randn(2, 1, 4, 4, dtype=torch.float64, requires_grad=True)
    other = bias.detach().clone()
    other[1, :, :, 2:] = 1e3
    layout = graphs.layout()
    out = attention(graphs.x, layout, bias)
    # Close and not equal: a bias that wants a gradient goes through another kernel.
    torch.testing.assert_close(out, attention(graphs.x, layout, other), rtol=1e-12, atol=1e-12)
    (grad,) = torch.autograd.grad(out.sin().sum(), bias)
    assert grad.isfinite().all()
    assert grad[1, :, :, 2:].abs().max() == 0
    assert grad[0].abs().min() > 0


def test_a_bias_follows_its_graph() -> None:
    graphs = packed_graphs((4, 2), dim=8)
    attention = MultiheadAttention(8, 2).double()
    bias = torch.randn(2, 2, 4, 4, dtype=torch.float64)
    together = attention(graphs.x, graphs.layout(), bias)
    small = graphs.graph(1)
    alone = attention(small.x, small.layout(), bias[1:, :, :2, :2])
    torch.testing.assert_close(together[graphs.index == 1], alone, rtol=1e-12, atol=1e-12)


def test_dropout_acts_on_weights_in_training_only() -> None:
    graphs = packed_graphs((6, 3), dim=8)
    attention = MultiheadAttention(8, 2, dropout=0.5).double()
    layout = graphs.layout()
    assert not torch.equal(attention(graphs.x, layout), attention(graphs.x, layout))
    attention.eval()
    assert torch.equal(attention(graphs.x, layout), attention(graphs.x, layout))


def _performers(dim: int = 8) -> tuple[PerformerAttention, LinearAttention]:
    pygs = PerformerAttention(dim, heads=2).double()
    ours = LinearAttention(dim, heads=2).double()
    ours.load_state_dict(pygs.state_dict())
    return pygs, ours


def test_performer_equals_pygs_where_nothing_is_padded() -> None:
    pygs, ours = _performers()
    graphs = packed_graphs((5, 5, 5))
    expected = pygs(graphs.x.view(3, 5, -1)).flatten(0, 1)
    actual = ours(graphs.x, graphs.layout())
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_performer_does_not_see_padding_while_pygs_does() -> None:
    pygs, ours = _performers()
    graphs = packed_graphs((3, 12))
    small = graphs.graph(0)
    alone = pygs(small.x[None])[0]
    torch.testing.assert_close(ours(graphs.x, graphs.layout())[:3], alone, rtol=1e-10, atol=1e-10)
    dense, mask = to_dense_batch(graphs.x, graphs.index)
    assert (pygs(dense, mask)[0, :3] - alone).abs().max() > 1e-3


def test_performer_gradients_do_not_see_padding() -> None:
    _, ours = _performers()
    graphs = packed_graphs((3, 12))
    together = ours(graphs.x, graphs.layout())[:3].sin().sum()
    small = graphs.graph(0)
    alone = ours(small.x, small.layout()).sin().sum()
    for a, b in zip(
        torch.autograd.grad(together, ours.parameters()),
        torch.autograd.grad(alone, ours.parameters()),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_performer_sums_keys_in_float32() -> None:
    graphs = packed_graphs((700, 9), dtype=torch.float32)
    attention = LinearAttention(graphs.x.size(1), heads=2)
    expected = attention(graphs.x, graphs.layout())
    with RefuseHalfSums(), torch.autocast("cpu", dtype=torch.bfloat16):
        found = attention(graphs.x, graphs.layout())
    assert (found - expected).abs().max() < 0.05 * expected.abs().max()


def test_performer_refuses_a_bias() -> None:
    attention = LinearAttention(8, heads=2)
    with pytest.raises(ConfigError, match="never forms the attention logits"):
        attention(torch.randn(2, 8), Layout.of(torch.tensor([0, 0])), torch.zeros(1, 2, 2, 2))


@pytest.mark.parametrize("kind", [MultiheadAttention, LinearAttention])
def test_heads_divide_the_width(kind: type) -> None:
    with pytest.raises(ConfigError, match=r"3 heads do not divide the width gt\.dim_hidden = 8"):
        kind(8, 3)


@pytest.mark.parametrize("kind", [MultiheadAttention, LinearAttention])
def test_shapes_are_known_without_memory(kind) -> None:
    """A model folder's shapes are compared before memory is taken."""
    with torch.device("meta"):
        without = kind(8, 2)
    shapes = {name: value.shape for name, value in kind(8, 2).state_dict().items()}
    assert {name: value.shape for name, value in without.state_dict().items()} == shapes


def test_a_bias_that_changes_in_place_is_seen_with_the_same_layout() -> None:
    torch.manual_seed(0)
    attention, x = MultiheadAttention(8, 2).eval(), torch.randn(5, 8)
    layout = Layout.of(torch.tensor([0, 0, 0, 1, 1]))
    bias = torch.nn.Parameter(torch.zeros(2, 2, 3, 3))
    for _ in range(2):  # a step of an optimiser in between
        out = attention(x, layout, bias)
        out.square().sum().backward()
        with torch.no_grad():
            bias -= bias.grad + 1
    assert not torch.equal(attention(x, layout, bias), out)


def test_dropping_all_weights_leaves_the_bias() -> None:
    attention, x = MultiheadAttention(8, 2, dropout=1.0), torch.randn(400, 8)
    torch.nn.init.constant_(attention.out_proj.bias, 3.0)
    out = attention(x, Layout.of(torch.zeros(400, dtype=torch.long)))
    torch.testing.assert_close(out, torch.full_like(out, 3.0))
