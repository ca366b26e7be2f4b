"""Gate, degree scaler and edge updates: what GraphGPS's layer does not have, off unless asked for."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from helpers.network_configs import ZINC, make
from helpers.packed_graphs import packed_graphs
from torch import nn

from graphgps_pearl import networks
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import GPSLayer, build_gps_layer
from graphgps_pearl.vocabulary import ATTENTION_GATES

DIM, HEADS = 8, 2
OPTIONS = [
    pytest.param(attention, {"attn_gate": gate, "degree_scaler": scaler}, id=f"{attention}-{gate}-{scaler}")
    for attention, gate, scaler in product(("Transformer", "Performer"), ATTENTION_GATES, (False, True))
    if gate != "none" or scaler
]
every_option = pytest.mark.parametrize(("attention", "options"), OPTIONS)


def _layer(attention: str, options: dict, moved: bool = True) -> GPSLayer:
    torch.manual_seed(1)
    layer = build_gps_layer(DIM, "GINE", attention, heads=HEADS, edge_dim=DIM, **options).double()
    if moved and layer.degree_scaler is not None:
        nn.init.normal_(layer.degree_scaler.theta1)
        nn.init.normal_(layer.degree_scaler.theta2)
    layer(*packed_graphs((6, 4, 7), seed=10).arguments())  # running statistics away from their start
    return layer


@every_option
def test_a_graph_does_not_see_its_batch_nor_the_order_of_its_nodes(attention: str, options: dict) -> None:
    layer = _layer(attention, options).eval()
    graphs = packed_graphs((5, 1, 9, 3, 2))
    x, _ = layer(*graphs.arguments())
    for number in range(graphs.num_graphs):
        alone, _ = layer(*graphs.graph(number).arguments())
        torch.testing.assert_close(x[graphs.index == number], alone, rtol=1e-9, atol=1e-10)
    shuffled, order, _ = graphs.permuted()
    torch.testing.assert_close(layer(*shuffled.arguments())[0], x[order], rtol=1e-9, atol=1e-10)


@every_option
def test_every_parameter_gets_a_gradient(attention: str, options: dict) -> None:
    layer = _layer(attention, options, moved=False)
    layer.zero_grad()
    layer(*packed_graphs().arguments())[0].sin().sum().backward()
    new = [name for name, _ in layer.named_parameters() if "gate" in name or "degree_scaler" in name]
    assert len(new) == 2 * (options["attn_gate"] != "none") + 2 * options["degree_scaler"]
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if name in new or parameter.dim() > 1:
            assert parameter.grad.abs().max() > 1e-8, name


@pytest.mark.parametrize("attention", ["Transformer", "Performer"])
def test_the_degree_scaler_starts_as_the_identity_and_then_follows_its_formula(attention: str) -> None:
    graphs = packed_graphs()
    with_it, without = _layer(attention, {"degree_scaler": True}, moved=False), _layer(attention, {})
    assert torch.equal(with_it(*graphs.arguments())[0], without(*graphs.arguments())[0])
    scaler = with_it.degree_scaler
    nn.init.normal_(scaler.theta1)
    nn.init.normal_(scaler.theta2)
    degree = torch.zeros(len(graphs.index), dtype=torch.float64)
    for target in graphs.edge_index[1].tolist():
        degree[target] += 1
    expected = graphs.x * scaler.theta1 + (1 + degree).log().unsqueeze(1) * graphs.x * scaler.theta2
    actual = scaler(graphs.x, graphs.edge_index, graphs.layout())
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("gate", ["head", "channel"])
def test_a_gate_multiplies_the_heads_before_the_output_projection(gate: str) -> None:
    attention = _layer("Transformer", {"attn_gate": gate}).attention
    graphs = packed_graphs()
    value = attention.gate.linear(graphs.x).sigmoid()
    if gate == "head":
        value = value.repeat_interleave(DIM // HEADS, dim=1)
    heads = []
    handle = attention.gate.register_forward_pre_hook(lambda _, args: heads.append(args[0]))
    actual = attention(graphs.x, graphs.layout())
    handle.remove()
    torch.testing.assert_close(actual, attention.out_proj(value * heads[0]), rtol=1e-12, atol=1e-12)
    nn.init.zeros_(attention.gate.linear.weight)
    nn.init.constant_(attention.gate.linear.bias, 50.0)  # sigmoid(50) = 1
    opened = attention(graphs.x, graphs.layout())
    torch.testing.assert_close(opened, attention.out_proj(heads[0]), rtol=1e-12, atol=1e-12)


def test_degrees_are_counted_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    x, edge_index, edge_attr, layout = packed_graphs().arguments()
    layers = [_layer("Transformer", {"degree_scaler": True}) for _ in range(3)]
    calls, true = [], torch.Tensor.log1p_
    monkeypatch.setattr(torch.Tensor, "log1p_", lambda degrees: calls.append(1) or true(degrees))
    for layer in layers:
        x, edge_attr = layer(x, edge_index, edge_attr, layout)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("gt.attn_gate", "head"), 10 * (64 * 4 + 4)),
        (("gt.attn_gate", "channel"), 10 * (64 * 64 + 64)),
        (("gt.degree_scaler", True), 10 * 2 * 64),
        (("gt.edge_update", True), 9 * (2 * 64 * 64 + 2 * 64)),  # the last layer's edges are not read
    ],
)
def test_parameters_count_as_attention_or_local(words: tuple, extra: int) -> None:
    part = "local" if words[0] == "gt.edge_update" else "attention"
    plain = networks.count_parameters(networks.build(make(ZINC), 1, 1))
    counts = networks.count_parameters(networks.build(make(ZINC, *words), 1, 1))
    assert counts == {**plain, part: plain[part] + extra}


@pytest.mark.parametrize(("key", "value"), [("attn_gate", "head"), ("degree_scaler", True)])
def test_they_want_attention(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=rf"gt\.{key}.*gt\.layer_type"):
        build_gps_layer(DIM, "GINE", "None", edge_dim=DIM, **{key: value})


def test_an_unknown_gate_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"gt\.attn_gate.*'heads'.*head"):
        build_gps_layer(DIM, "GINE", "Transformer", edge_dim=DIM, attn_gate="heads")


def test_edges_follow_the_formula_and_reach_the_next_layer() -> None:
    torch.manual_seed(2)
    layers = [
        build_gps_layer(DIM, "GINE", "Transformer", heads=HEADS, edge_dim=DIM, edge_update=True).double()
        for _ in range(2)
    ]
    x, edge_index, edge_attr, layout = packed_graphs().arguments()
    h, edges = layers[0](x, edge_index, edge_attr, layout)
    update = layers[0].edge_update
    expected = torch.empty_like(edge_attr)
    for number, (j, i) in enumerate(edge_index.t().tolist()):
        expected[number] = update.edges.weight @ edge_attr[number] + update.nodes.weight @ (h[i] + h[j])
    mean, variance = expected.mean(dim=0), expected.var(dim=0, unbiased=False)
    expected = edge_attr + ((expected - mean) / (variance + 1e-5).sqrt()).relu()
    torch.testing.assert_close(edges, expected, rtol=1e-9, atol=1e-10)
    layers[1](h, edge_index, edges, layout)[0].sin().sum().backward()
    for name, parameter in update.named_parameters():
        assert parameter.grad.abs().max() > 1e-8, name


def test_updated_edges_do_not_see_their_batch_nor_an_order() -> None:
    layer = _layer("Transformer", {"edge_update": True}).eval()
    graphs = packed_graphs((5, 1, 9, 3, 2))
    _, edges = layer(*graphs.arguments())
    of_graph = graphs.index[graphs.edge_index[0]]
    for number in range(graphs.num_graphs):
        _, alone = layer(*graphs.graph(number).arguments())
        torch.testing.assert_close(edges[of_graph == number], alone, rtol=1e-9, atol=1e-10)
    shuffled, _, edge_order = graphs.permuted()
    torch.testing.assert_close(layer(*shuffled.arguments())[1], edges[edge_order], rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("local", ["CustomGatedGCN", "GIN"])
def test_edges_are_updated_where_a_local_model_reads_them(local: str) -> None:
    with pytest.raises(ConfigError, match=rf"gt\.edge_update: {local}"):
        build_gps_layer(DIM, local, "Transformer", edge_dim=DIM, edge_update=True)
