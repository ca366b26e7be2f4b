"""Attention in groups of similar size equals attention in one group; dropout is dropout."""

from __future__ import annotations

import itertools

import pytest
import torch
from helpers.packed_graphs import packed_graphs

from graphgps_pearl.layers import MultiheadAttention, grouping, weights
from graphgps_pearl.layers.grouping import cuts, group_graphs
from graphgps_pearl.layers.layout import Layout


@pytest.mark.parametrize("sizes", [(5, 1, 9, 3, 5), (4, 4), (3,), (2, 0, 7, 0), ()])
@pytest.mark.parametrize("cost", [0, 30, 10**9])
def test_every_node_has_one_place(sizes: tuple[int, ...], cost: int) -> None:
    found = group_graphs(torch.tensor(sizes, dtype=torch.long), cost)
    nodes = [g.source if g.rows is None else g.source[g.rows] for g in found.groups]
    packed = torch.cat([*nodes, torch.empty(0, dtype=torch.long)])
    assert torch.equal(packed[found.place], torch.arange(sum(sizes)))
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
    fixed = torch.rand(2, 2, 4, 4) > 0.3
    monkeypatch.setattr(weights, "draw_kept", lambda *_: (fixed, 0.7))
    query, key, value = (torch.randn(2, 2, 4, 3, dtype=torch.float64, requires_grad=True) for _ in range(3))
    added = torch.randn(2, 1, 4, 4, dtype=torch.float64, requires_grad=True) if with_bias else None
    expected = query @ key.transpose(-2, -1) / 3**0.5 + (0 if added is None else added)
    expected = expected.softmax(-1) * fixed / 0.7 @ value
    torch.testing.assert_close(weights.attend(query, key, value, added, 0.3), expected)
    inputs = (query, key, value) if added is None else (query, key, value, added)
    assert torch.autograd.gradcheck(lambda q, k, v, a=None: weights.attend(q, k, v, a, 0.3), inputs)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.93])
def test_the_share_that_stays(dropout: float) -> None:
    torch.manual_seed(0)
    kept, share = weights.draw_kept(torch.Size((101, 103, 31)), dropout, torch.device("cpu"))
    assert abs(share - (1 - dropout)) < 2**-16
    assert abs(float(kept.double().mean()) - share) < 5e-3
    torch.manual_seed(0)
    assert torch.equal(kept, weights.draw_kept(kept.shape, dropout, kept.device)[0])


def test_half_precision_in_autocast() -> None:
    graphs = packed_graphs((5, 3), dim=8)
    attention = MultiheadAttention(8, 2, dropout=0.5)
    with torch.autocast("cpu", torch.bfloat16):
        out = attention(graphs.x.float(), graphs.layout())
    out.float().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in attention.parameters())
