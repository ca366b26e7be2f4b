"""SAN's layer against its formula, pair by pair."""

import math

import pytest
import torch
from helpers.graphs import batch_of, random_graph
from helpers.half_sums import RefuseHalfSums

from graphgps_pearl.layers import Layout, san
from graphgps_pearl.layers.san import SANAttention, SANLayer

WEIGHT = san._weight


def by_pairs(attention: SANAttention, x, edge_index, edge_attr, index) -> torch.Tensor:
    """The formula of the module's docstring, one pair at a time."""
    heads, gamma, n = attention.heads, attention.gamma, len(x)
    width = x.size(1) // heads

    def split(value):
        return value.view(-1, heads, width)

    q, k, v = split(attention.query(x)), split(attention.key(x)), split(attention.value(x))
    e = split(attention.edge(edge_attr))
    other = attention.other
    if other is not None:
        q2, k2 = split(other["query"](x)), split(other["key"](x))
        e2 = split(other["edge"](attention.no_edge))[0]
    edges = {(int(j), int(i)): number for number, (j, i) in enumerate(edge_index.t())}
    rows = []
    for i in range(n):
        total, weights = torch.zeros(heads, width, dtype=x.dtype), torch.zeros(heads, 1, dtype=x.dtype)
        for j in range(n):
            if (j, i) in edges:
                product = (q[i] * k[j] * e[edges[j, i]]).sum(dim=1, keepdim=True) / math.sqrt(width)
                weight = product.clamp(-5, 5).exp() / (1 + gamma if other is not None else 1)
            elif other is not None and i != j and index[i] == index[j]:
                product = (q2[i] * k2[j] * e2).sum(dim=1, keepdim=True) / math.sqrt(width)
                weight = gamma * product.clamp(-5, 5).exp() / (1 + gamma)
            else:
                continue
            total, weights = total + weight * v[j], weights + weight
        rows.append((total / (weights + 1e-6)).flatten())
    return torch.stack(rows)


def test_attention_is_the_formula() -> None:
    torch.manual_seed(0)
    batch = batch_of(*((random_graph(n), n) for n in (3, 7, 5)))
    x, edge_attr = torch.randn(batch.num_nodes, 8).double(), torch.randn(batch.num_edges, 8).double()
    layout = Layout.of(batch.batch)
    for full_graph in (True, False):
        attention = SANAttention(8, 2, full_graph, gamma=0.3).double()
        expected = by_pairs(attention, x, batch.edge_index, edge_attr, batch.batch)
        found = attention(x, batch.edge_index, edge_attr, layout)
        assert torch.allclose(found, expected, atol=1e-12)


def test_sums_over_a_hub_in_bfloat16_are_in_float32() -> None:
    star = torch.stack([torch.arange(1, 1000), torch.zeros(999, dtype=torch.long)])
    x, edge_attr = torch.randn(1000, 8).bfloat16(), torch.randn(999, 8).bfloat16()
    attention = SANAttention(8, 2, full_graph=False).bfloat16()
    with RefuseHalfSums():
        found = attention(x, star, edge_attr, Layout.of(torch.zeros(1000, dtype=torch.long)))
    assert found.dtype == torch.bfloat16


def test_every_parameter_gets_a_gradient() -> None:
    torch.manual_seed(0)
    batch = batch_of(*((random_graph(n), n) for n in (6, 7)))
    layer = SANLayer(8, 2, gamma=0.1, dropout=0.1)
    x, edge_attr = torch.randn(batch.num_nodes, 8), torch.randn(batch.num_edges, 8)
    found, _ = layer(x, batch.edge_index, edge_attr, Layout.of(batch.batch))
    found.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())


def test_weights_in_float32_and_nodes_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU's autocast takes exponentials in float32, a CPU's does not."""
    monkeypatch.setattr(san, "_weight", lambda products, width: WEIGHT(products.float(), width))
    batch = batch_of(*((random_graph(n), n) for n in (6, 7)))
    layer = SANLayer(8, 2, gamma=0.1)
    arguments = torch.randn(13, 8), batch.edge_index, torch.randn(batch.num_edges, 8), Layout.of(batch.batch)
    expected, _ = layer(*arguments)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = layer(*arguments)
    found.float().square().sum().backward()
    assert (found - expected).abs().max() < 0.1 * expected.abs().max()


def test_layer_norm_is_of_each_node() -> None:
    torch.manual_seed(0)
    batch = batch_of((random_graph(6), 6))
    layer = SANLayer(8, 2, norm="layer")
    x, edge_attr = torch.randn(6, 8), torch.randn(batch.num_edges, 8)
    out, _ = layer(x, batch.edge_index, edge_attr, Layout.of(batch.batch))
    torch.testing.assert_close(out.mean(dim=1), torch.zeros(6), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.var(dim=1, correction=0), torch.ones(6), atol=1e-3, rtol=0)
