"""Attention in groups of similar size equals attention in one group; dropout is dropout."""

from __future__ import annotations

import itertools

import pytest
import torch
from helpers.packed_graphs import packed_graphs

from graphgps_pearl.layers import MultiheadAttention, grouping
from graphgps_pearl.layers.attention import attend
from graphgps_pearl.layers.grouping import cuts, group_graphs
from graphgps_pearl.layers.kernels import attention as kernel
from graphgps_pearl.layers.layout import Layout
from graphgps_pearl.switches import use_kernels


@pytest.mark.parametrize("sizes", [(5, 1, 9, 3, 5), (4, 4), (3,), (2, 0, 7, 0), ()])
@pytest.mark.parametrize("cost", [0, 30, 10**9])
def test_every_node_has_one_dense_row(sizes: tuple[int, ...], cost: int) -> None:
    found = group_graphs(torch.tensor(sizes, dtype=torch.long), cost)
    packed = torch.cat([*(group.nodes for group in found.groups), torch.empty(0, dtype=torch.long)])
    assert torch.equal(packed[found.dense_row], torch.arange(sum(sizes)))
    if cost == 0:
        assert all(group.mask is None for group in found.groups)
    if cost == 10**9:
        assert len(found.groups) <= 1


def test_cuts_are_the_cheapest() -> None:
    sizes = [2, 3, 3, 5, 8, 9, 13]
    for cost in (1, 20, 60, 200, 1000):

        def price(at: tuple[int, ...], cost: int = cost) -> int:
            edges = [0, *at, len(sizes)]
            return sum((b - a) * sizes[b - 1] ** 2 + cost for a, b in itertools.pairwise(edges))

        every = [at for k in range(7) for at in itertools.combinations(range(1, 7), k)]
        chosen = tuple(start for start, _ in cuts(sizes, cost) if start)
        assert price(chosen) == min(map(price, every))


@pytest.mark.parametrize("with_bias", [False, True])
def test_groups_change_nothing(monkeypatch: pytest.MonkeyPatch, with_bias: bool) -> None:
    graphs = packed_graphs((5, 1, 9, 3, 8), dim=8)
    attention = MultiheadAttention(8, 2).double()
    bias = torch.randn(5, 2, 9, 9, dtype=torch.float64, requires_grad=True) if with_bias else None
    wanted = [*attention.parameters(), *([bias] if bias is not None else [])]
    results = []
    for cost in (0, 40, 10**9):
        monkeypatch.setattr(grouping.group_graphs, "__defaults__", (cost,))
        layout = Layout.of(graphs.index, len(graphs.index.unique()))
        out = attention(graphs.x, layout, bias)
        results.append((out, *torch.autograd.grad(out.sin().sum(), wanted)))
    for other in results[:2]:
        for a, b in zip(other, results[2], strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("with_bias", [False, True])
def test_dropout_by_finite_differences(monkeypatch: pytest.MonkeyPatch, with_bias: bool) -> None:
    """With the same draw every time, values are those of the formula and gradients are their slopes."""
    sizes = (4, 2, 4)
    kept = {n: torch.rand(count * 2, n, n) > 0.3 for n, count in ((4, 2), (2, 1))}
    monkeypatch.setattr(kernel.compiled, "serves", lambda *_: False)  # it has other draws
    monkeypatch.setattr(kernel, "draw_signs", lambda shape, *_: (kept[shape[-1]].float() - 0.5, 0.7))
    found = group_graphs(torch.tensor(sizes), cost=0)
    qkv = torch.randn(10, 3 * 6, dtype=torch.float64, requires_grad=True)
    added = [torch.randn(len(g.graphs), 1, g.size, g.size).double().requires_grad_() for g in found.groups]
    none = [None] * len(added)

    def by_the_formula() -> torch.Tensor:
        out = torch.empty(10, 6, dtype=torch.float64)
        for group, own in zip(found.groups, added, strict=True):
            rows = group.nodes.view(-1, group.size)
            query, key, value = qkv[rows].view(*rows.shape, 3, 2, 3).permute(2, 0, 3, 1, 4)
            scores = query @ key.transpose(-2, -1) / 3**0.5 + (own if with_bias else 0)
            stay = kept[group.size].view(scores.shape)
            heads = scores.softmax(-1) * stay / 0.7 @ value
            out[rows] = heads.transpose(1, 2).flatten(2)
        return out

    torch.testing.assert_close(
        kernel.attend(qkv, 2, found, added if with_bias else none, 0.3), by_the_formula()
    )
    inputs = (qkv, *added) if with_bias else (qkv,)
    assert torch.autograd.gradcheck(lambda x, *b: kernel.attend(x, 2, found, b or none, 0.3), inputs)


@pytest.mark.parametrize("with_bias", [False, True])
def test_the_kernel_equals_the_plain_attention(monkeypatch: pytest.MonkeyPatch, with_bias: bool) -> None:
    """Where nothing is dropped: values and gradients, with padding and without."""
    monkeypatch.setattr(kernel.compiled, "serves", lambda *_: False)  # it has other draws
    monkeypatch.setattr(kernel, "draw_signs", lambda shape, *_: (torch.ones(shape), 1.0))
    for cost in (0, 40, 10**9):
        found = group_graphs(torch.tensor((5, 1, 9, 3, 0, 8)), cost)
        qkv = torch.randn(26, 3 * 8, dtype=torch.float64, requires_grad=True)
        bias = [group.padding(torch.float64) for group in found.groups]
        inputs = [qkv]
        if with_bias:
            shapes = [(len(group.graphs), 2, group.size, group.size) for group in found.groups]
            own = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
            bias = [a if b is None else a + b for a, b in zip(own, bias, strict=True)]
            inputs += own
        results = [
            (out, *torch.autograd.grad(out.sin().sum(), inputs, retain_graph=True))
            for out in (attend(qkv, 2, found, bias, 0.0), kernel.attend(qkv, 2, found, bias, 0.5))
        ]
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_the_switch_decides_which_attention_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs, calls = packed_graphs((5, 3), dim=8), []
    true = kernel.attend
    monkeypatch.setattr(kernel, "attend", lambda *args: calls.append(1) or true(*args))
    attention = MultiheadAttention(8, 2, dropout=0.5).double()
    for enabled in (False, True):
        with use_kernels(enabled):
            x = graphs.x.clone().requires_grad_()
            out = attention(x, graphs.layout())
            (grad,) = torch.autograd.grad(out.sum(), x, create_graph=not enabled)
        assert grad.isfinite().all()
        assert bool(calls) == enabled
    attention.eval()(graphs.x, graphs.layout())
    assert len(calls) == 1


@pytest.mark.parametrize("enabled", [False, True])
def test_dropout_keeps_the_mean(enabled: bool) -> None:
    torch.manual_seed(0)
    graphs = packed_graphs((6, 3), dim=8)
    attention = MultiheadAttention(8, 2, dropout=0.4).double()
    layout = graphs.layout()
    with torch.no_grad(), use_kernels(enabled):
        mean = torch.stack([attention(graphs.x, layout) for _ in range(3000)]).mean(0)
        torch.testing.assert_close(mean, attention.eval()(graphs.x, layout), rtol=0, atol=0.05)


def test_padding_has_no_part_in_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """One group with padding and groups without: the same values and gradients where nothing is dropped."""
    monkeypatch.setattr(kernel.compiled, "serves", lambda *_: False)  # it has other draws
    monkeypatch.setattr(kernel, "draw_signs", lambda shape, *_: (torch.ones(shape), 0.7))
    graphs = packed_graphs((5, 1, 9, 3, 8), dim=8)
    attention = MultiheadAttention(8, 2, dropout=0.3).double()
    results = []
    for cost in (0, 10**9):
        monkeypatch.setattr(grouping.group_graphs, "__defaults__", (cost,))
        x = graphs.x.clone().requires_grad_()
        with use_kernels(True):
            out = attention(x, Layout.of(graphs.index, 5))
        results.append((out, *torch.autograd.grad(out.sin().sum(), [x, *attention.parameters()])))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.93])
def test_the_share_that_stays(dropout: float) -> None:
    torch.manual_seed(0)
    signs, share = kernel.draw_signs(torch.Size((101, 103, 31)), dropout, torch.device("cpu"))
    assert abs(share - (1 - dropout)) < 2**-16
    assert abs(float((signs > 0).double().mean()) - share) < 5e-3
    assert not (signs == 0).any()
    torch.manual_seed(0)
    assert torch.equal(signs, kernel.draw_signs(signs.shape, dropout, signs.device)[0])


def test_half_precision_in_autocast() -> None:
    graphs = packed_graphs((5, 3), dim=8)
    attention = MultiheadAttention(8, 2, dropout=0.5)
    with torch.autocast("cpu", torch.bfloat16):
        out = attention(graphs.x.float(), graphs.layout())
    out.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())
