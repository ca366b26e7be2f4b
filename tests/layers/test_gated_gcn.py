"""GatedGCN against the same formula written out on dense [n, n, F] tensors."""

from __future__ import annotations

import pytest
import torch
from helpers.packed_graphs import Packed, packed_graphs
from torch import Tensor

from graphgps_pearl.layers import DistanceGate, GatedGCN


def _dense_formula(layer: GatedGCN, graph: Packed) -> tuple[Tensor, Tensor]:
    """x̂ [n, F] and ê [n, n, F] (row: target, column: source) of one graph."""
    n, dim = graph.x.shape
    source, target = graph.edge_index
    present = torch.zeros(n, n, 1, dtype=graph.x.dtype)
    present[target, source] = 1.0
    edges = graph.x.new_zeros(n, n, dim)
    edges[target, source] = graph.edge_attr
    weight, bias = layer.lin_nodes.weight.view(4, dim, dim), layer.lin_nodes.bias.view(4, dim)
    own, sent, at_target, at_source = (graph.x @ w.T + b for w, b in zip(weight, bias, strict=True))
    logit = at_target[:, None] + at_source[None, :] + layer.lin_edges(edges)
    gate = present / (1 + torch.exp(-logit))
    if layer.gate is not None:
        away = (graph.position[:, None] - graph.position[None, :]).square().sum(-1, keepdim=True)
        gate = gate * layer.gate(away)
    mixed = torch.einsum("isf,sf->if", gate, sent) / (gate.sum(1) + 1e-6)
    return own + mixed, logit


@pytest.mark.parametrize("equivstable_pe", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_equals_the_dense_formula(residual: bool, equivstable_pe: bool) -> None:
    graph = packed_graphs((7,), dim=4)
    layer = GatedGCN(4, residual=residual, equivstable_pe=equivstable_pe).double()
    x, edge_attr = layer(*graph.arguments())
    nodes, pairs = _dense_formula(layer, graph)
    source, target = graph.edge_index

    def batch_norm(rows: Tensor) -> Tensor:
        return (rows - rows.mean(0)) / (rows.var(0, unbiased=False) + 1e-5).sqrt()

    torch.testing.assert_close(x, batch_norm(nodes).relu(), rtol=1e-9, atol=1e-9)
    update = batch_norm(pairs[target, source]).relu()
    expected = graph.edge_attr + update if residual else update
    torch.testing.assert_close(edge_attr, expected, rtol=1e-9, atol=1e-9)


def test_last_layer_has_no_edge_norm_and_leaves_edges_alone() -> None:
    dim, graph = 6, packed_graphs((5, 4), dim=6)
    inner, last = GatedGCN(dim).double(), GatedGCN(dim, update_edges=False).double()
    last.load_state_dict({k: v for k, v in inner.state_dict().items() if not k.startswith("norm_edges")})
    count = [sum(p.numel() for p in layer.parameters()) for layer in (inner, last)]
    assert count[0] - count[1] == 2 * dim
    x, _ = inner(*graph.arguments())
    last_x, last_edges = last(*graph.arguments())
    assert torch.equal(x, last_x)
    assert last_edges is graph.edge_attr
    last_x.sin().sum().backward()
    assert all(p.grad is not None for p in last.parameters())


def test_edge_dropout_touches_edges_alone() -> None:
    graph = packed_graphs((8,), dim=6)
    layer = GatedGCN(6, dropout=0.5).double()
    first, second = layer(*graph.arguments()), layer(*graph.arguments())
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[1], second[1])


def test_graphs_without_edges_leave_the_running_statistics_alone() -> None:
    graph = packed_graphs((2, 1, 1), dim=6)
    assert graph.edge_index.size(1) == 0
    layer = GatedGCN(6).double()
    x, edge_attr = layer(*graph.arguments())
    assert x.isfinite().all()
    assert edge_attr.shape == (0, 6)
    assert all(buffer.isfinite().all() for buffer in layer.buffers())
    (x.sin().sum() + edge_attr.sum()).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_distance_gate_lies_between_zero_and_one_and_wants_distances() -> None:
    gate = DistanceGate(5)
    weights = gate(torch.rand(7, 1))
    assert weights.shape == (7, 1)
    assert ((weights > 0) & (weights < 1)).all()
    with pytest.raises(ValueError, match="has none"):
        gate(None)
