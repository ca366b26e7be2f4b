"""Pairs that attention updates: the formula pair by pair, whatever the groups, and gradients everywhere."""

from __future__ import annotations

import pytest
import torch
from helpers.packed_graphs import Packed, packed_graphs
from torch import Tensor, nn

from graphgps_pearl.layers import PairStream, layout
from graphgps_pearl.layers.attention import MultiheadAttention
from graphgps_pearl.pearl import BPEARL
from graphgps_pearl.switches import use_kernels

DIM, HEADS, LAYERS, PAIR_DIM, WIDTH = 8, 2, 3, 5, 4


@pytest.fixture
def modules() -> tuple[BPEARL, PairStream, list[MultiheadAttention]]:
    torch.manual_seed(0)
    encoding = BPEARL(PAIR_DIM, hidden_dim=6, num_layers=2, num_taps=2, return_pairs=True).double().eval()
    stream = PairStream(PAIR_DIM, HEADS, LAYERS, DIM, WIDTH).double()
    nn.init.normal_(stream.bias)
    for update in stream.updates:
        nn.init.normal_(update.out)
    return encoding, stream, [MultiheadAttention(DIM, HEADS).double() for _ in range(LAYERS)]


def _run(modules: tuple, graphs: Packed) -> tuple[list[Tensor], Tensor]:
    """The input of each attention and the last output; attentions follow each other directly."""
    encoding, stream, attentions = modules
    _, pairs = encoding(graphs.edge_index, graphs.index)
    x, packed = graphs.x, graphs.layout()
    inputs = []
    for attention, bias in zip(attentions, stream(pairs), strict=True):
        inputs.append(x)
        x = attention(x, packed, bias)
    return inputs, x


def _one_graph(modules: tuple, graph: Packed) -> Tensor:
    """The same by the formula, pair after pair, for one graph."""
    encoding, stream, attentions = modules
    values = encoding(graph.edge_index, graph.index)[1].to_dense()  # [n, n, D] by (v, m)
    n, x = len(graph.x), graph.x
    first, second = stream.weight.chunk(2, dim=1)
    z = torch.stack(
        [torch.stack([values[v, m] @ first + values[m, v] @ second for m in range(n)]) for v in range(n)]
    )
    for number, attention in enumerate(attentions):
        query, key, value = (x @ attention.in_proj_weight.t() + attention.in_proj_bias).chunk(3, dim=1)
        heads = lambda t: t.view(n, HEADS, -1).transpose(0, 1)  # noqa: E731
        products = heads(query) @ heads(key).transpose(1, 2) / (DIM / HEADS) ** 0.5  # [H, n, n]
        bias = torch.einsum("vmc,hc->hvm", z, stream.bias[number])
        mixed = (products + bias).softmax(-1) @ heads(value)
        if number < LAYERS - 1:
            update, new = stream.updates[number], z.clone()
            at_v, at_m = update.nodes(x).chunk(2, dim=1)
            for v in range(n):
                for m in range(n):
                    seen = update.inner @ torch.cat([z[v, m], products[:, v, m]])
                    new[v, m] = z[v, m] + update.out @ (seen + at_v[v] + at_m[m]).relu()
            z = new
        x = attention.out_proj(mixed.transpose(0, 1).flatten(1))
    return x


@pytest.mark.parametrize("cost", [0, 40, 10**9])
@pytest.mark.parametrize("kernels", [True, False])
def test_the_stream_is_that_of_the_formula(
    modules: tuple, kernels: bool, cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "group_cost", lambda device: cost)
    graphs = packed_graphs((5, 1, 7, 3, 7))
    with use_kernels(kernels):
        _, out = _run(modules, graphs)
    for number in range(graphs.num_graphs):
        expected = _one_graph(modules, graphs.graph(number))
        torch.testing.assert_close(out[graphs.index == number], expected, rtol=1e-9, atol=1e-10)


def test_the_stream_begins_without_an_effect(modules: tuple) -> None:
    encoding, _, attentions = modules
    graphs = packed_graphs()
    fresh = PairStream(PAIR_DIM, HEADS, LAYERS, DIM, WIDTH).double()
    _, out = _run((encoding, fresh, attentions), graphs)
    x = graphs.x
    for attention in attentions:
        x = attention(x, graphs.layout())
    torch.testing.assert_close(out, x, rtol=1e-12, atol=1e-12)


def test_every_weight_has_a_gradient(modules: tuple) -> None:
    encoding, stream, _ = modules
    _, out = _run(modules, packed_graphs())
    out.square().sum().backward()
    for name, parameter in [*stream.named_parameters(), *encoding.named_parameters()]:
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        if parameter.dim() > 1:
            assert parameter.grad.abs().max() > 1e-10, name


def test_gradients_agree_with_differences(modules: tuple) -> None:
    _, stream, _ = modules
    graphs = packed_graphs((4, 2))
    weights = [stream.weight, stream.bias, stream.updates[0].inner, stream.updates[0].out]

    def function(*_: Tensor) -> Tensor:
        return _run(modules, graphs)[1].square().sum()

    assert torch.autograd.gradcheck(function, weights, atol=1e-5, rtol=1e-4)


def test_no_graphs_at_all(modules: tuple) -> None:
    encoding, stream, attentions = modules
    empty = torch.empty(0, DIM, dtype=torch.float64)
    index = torch.empty(0, dtype=torch.long)
    _, pairs = encoding(torch.empty(2, 0, dtype=torch.long), index)
    assert attentions[0](empty, layout.Layout.of(index, 0), stream(pairs)[0]).shape == (0, DIM)
