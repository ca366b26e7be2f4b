"""The GPS layer against PyG's, and what must hold for every pair of local and global model."""

from __future__ import annotations

import copy
import math
from itertools import product

import pytest
import torch
from helpers.half_sums import RefuseHalfSums
from helpers.packed_graphs import packed_graphs
from torch import nn
from torch.optim.swa_utils import update_bn
from torch_geometric.nn import BatchNorm as PyGBatchNorm
from torch_geometric.nn import GATConv, GCNConv, GENConv, GINConv, GINEConv, GPSConv, PNAConv

from graphgps_pearl.layers import (
    GLOBAL_MODELS,
    LOCAL_MODELS,
    GPSLayer,
    Layout,
    LocalSettings,
    MessagePassingLayer,
    Norm,
    build_gps_layer,
    build_local,
    reads_edges,
)
from graphgps_pearl.layers.batch_norm import BatchNorm

DIM, HEADS = 8, 2
PAIRS = [pair for pair in product(LOCAL_MODELS, GLOBAL_MODELS) if pair != ("None", "None")]
every_pair = pytest.mark.parametrize(("local", "attention"), PAIRS)


def _layer(local: str, attention: str, norm: str = "batch", **kwargs: object) -> GPSLayer:
    torch.manual_seed(1)
    kwargs.setdefault("edge_dim", DIM)
    layer = build_gps_layer(DIM, local, attention, heads=HEADS, norm=norm, **kwargs).double()  # type: ignore[arg-type]
    for parameter in layer.parameters():
        if parameter.dim() == 1:  # biases and norms away from zero and one, so that they count
            nn.init.normal_(parameter, mean=0.5, std=0.3)
    for seed in range(2):  # running statistics away from their start
        layer(*packed_graphs((6, 4, 7), seed=seed + 10).arguments())
    return layer


def _mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(DIM, DIM), nn.ReLU(), nn.Linear(DIM, DIM))


PYG_CONVOLUTIONS = {
    "None": lambda: None,
    "GCN": lambda: GCNConv(DIM, DIM),
    "GIN": lambda: GINConv(_mlp()),
    "GINE": lambda: GINEConv(_mlp()),
    "GAT": lambda: GATConv(DIM, DIM // HEADS, heads=HEADS, edge_dim=DIM),
    "GENConv": lambda: GENConv(DIM, DIM),
    "PNA": lambda: PNAConv(
        DIM, DIM, ["mean", "max", "sum"], ["identity"], torch.tensor([0, 1]), edge_dim=DIM
    ),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("local", PYG_CONVOLUTIONS)
def test_equals_pygs_layer(local: str, norm: str, training: bool) -> None:
    pyg_norm = {"batch": "batch_norm", "layer": "layer_norm", "none": None}[norm]
    pygs = GPSConv(DIM, PYG_CONVOLUTIONS[local](), heads=HEADS, norm=pyg_norm).double()
    ours = _layer(local, "Transformer", norm)
    pygs.attn.load_state_dict(ours.attention.state_dict())
    pygs.mlp.load_state_dict(ours.feed_forward.state_dict())
    norms = [(pygs.norm2, ours.norm_attention), (pygs.norm3, ours.norm)]
    if local != "None":
        weights = ours.local.conv.state_dict()
        pygs.conv.load_state_dict({name.replace(".module.", "."): w for name, w in weights.items()})
        norms.append((pygs.norm1, ours.norm_local))
    for theirs, mine in norms:
        if norm != "none":
            theirs.load_state_dict(getattr(mine, norm).state_dict())
    pygs.train(training), ours.train(training)
    graphs = packed_graphs()
    features = {"edge_attr": graphs.edge_attr} if reads_edges(local) else {}
    expected = pygs(graphs.x, graphs.edge_index, graphs.index, **features)
    actual, edge_attr = ours(*graphs.arguments())
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
    assert edge_attr is graphs.edge_attr


def test_gine_refuses_weights_with_another_eps() -> None:
    ours = _layer("GINE", "None").local.conv
    state = ours.state_dict()
    ours.load_state_dict(state)
    with pytest.raises(ValueError, match=r"^eps: GINE has ε = 0, and these weights come with 0\.5"):
        ours.load_state_dict({**state, "eps": torch.tensor([0.5])})


def test_gine_by_distance_equals_gine_where_the_gate_is_open() -> None:
    gated, plain = _layer("GINE", "None", equivstable_pe=True), _layer("GINE", "None")
    plain.local.conv.nn.load_state_dict(gated.local.conv.mlp.state_dict())
    for part in ("norm_local", "feed_forward", "norm"):
        getattr(plain, part).load_state_dict(getattr(gated, part).state_dict())
    graphs = packed_graphs()
    closed, _ = gated(*graphs.arguments())
    nn.init.constant_(gated.local.conv.gate.mlp[2].bias, 50.0)  # sigmoid(50) = 1
    nn.init.zeros_(gated.local.conv.gate.mlp[2].weight)
    opened, _ = gated(*graphs.arguments())
    expected, _ = plain(*graphs.arguments())
    torch.testing.assert_close(opened, expected, rtol=1e-10, atol=1e-10)
    assert (closed - expected).abs().max() > 1e-3


@every_pair
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_a_graph_does_not_see_its_batch(local: str, attention: str, norm: str) -> None:
    layer = _layer(local, attention, norm, equivstable_pe=local in ("GINE", "CustomGatedGCN")).eval()
    graphs = packed_graphs((5, 1, 9, 3, 2))
    x, edge_attr = layer(*graphs.arguments())
    for number in range(graphs.num_graphs):
        alone_x, alone_edges = layer(*graphs.graph(number).arguments())
        torch.testing.assert_close(x[graphs.index == number], alone_x, rtol=1e-9, atol=1e-10)
        edges = graphs.index[graphs.edge_index[0]] == number
        torch.testing.assert_close(edge_attr[edges], alone_edges, rtol=1e-9, atol=1e-10)


@every_pair
@pytest.mark.parametrize("training", [True, False])
def test_permuted_nodes_give_permuted_results(local: str, attention: str, training: bool) -> None:
    layer = _layer(local, attention, equivstable_pe=local in ("GINE", "CustomGatedGCN")).train(training)
    graphs = packed_graphs((5, 1, 9, 3))
    shuffled, order, edges = graphs.permuted()
    x, edge_attr = layer(*graphs.arguments())
    shuffled_x, shuffled_edges = layer(*shuffled.arguments())
    torch.testing.assert_close(shuffled_x, x[order], rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(shuffled_edges, edge_attr[edges], rtol=1e-9, atol=1e-10)


@every_pair
@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
def test_every_parameter_gets_a_gradient(local: str, attention: str, norm: str) -> None:
    layer = _layer(local, attention, norm, equivstable_pe=local in ("GINE", "CustomGatedGCN"))
    layer.zero_grad()
    x, edge_attr = layer(*packed_graphs().arguments())
    (x.sin().sum() + edge_attr.sin().sum()).backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        if parameter.dim() > 1:  # a bias in front of a batch norm is idle, a matrix never is
            assert parameter.grad.abs().max() > 1e-8, name


@every_pair
@pytest.mark.parametrize("sizes", [(1,), (1, 1), (2,), (2, 1, 2)])
def test_graphs_without_edges(local: str, attention: str, sizes: tuple[int, ...]) -> None:
    layer = _layer(local, attention)
    graphs = packed_graphs(sizes)
    assert graphs.edge_index.size(1) == 0
    for training in (True, False):
        x, edge_attr = layer.train(training)(*graphs.arguments())
        assert x.shape == graphs.x.shape
        assert x.isfinite().all()
        (x.sin().sum() + edge_attr.sum()).backward()
    assert all(buffer.isfinite().all() for buffer in layer.buffers())
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())


@every_pair
def test_bfloat16_autocast_stays_near_float32(local: str, attention: str) -> None:
    layer = _layer(local, attention).float()
    graphs = packed_graphs(dtype=torch.float32)
    exact, _ = layer(*graphs.arguments())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough, edge_attr = layer(*graphs.arguments())
        (rough.float().sin().sum() + edge_attr.float().sum()).backward()
    assert (rough - exact).abs().max() < 0.1 * exact.abs().max()
    assert all(p.grad.isfinite().all() for p in layer.parameters() if p.grad is not None)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_layer_norm_of_a_large_graph_in_half_precision(dtype: torch.dtype) -> None:
    """float16 ends at 65,504, and there are more numbers than that to normalise."""
    x, layout = torch.randn(1100, 64).to(dtype) + 1, Layout.of(torch.zeros(1100, dtype=torch.long))
    norm = Norm(64, "layer")
    with RefuseHalfSums():
        found = norm(x, layout)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), norm(x.float(), layout), rtol=2**-8, atol=2**-8)


def test_degrees_in_bfloat16_are_counted_in_float32() -> None:
    star = torch.stack([torch.arange(1, 3000), torch.zeros(2999, dtype=torch.long)])
    layout, x = Layout.of(torch.zeros(3000, dtype=torch.long)), torch.randn(3000, DIM).bfloat16()
    with RefuseHalfSums():
        scaled = layout.log_degree(star, torch.bfloat16)
        weights = _layer("GCN", "None").local.arguments(x, star, None, layout)[1]
    assert scaled.dtype == weights.dtype == torch.bfloat16
    assert scaled[0] == torch.tensor(math.log(3000)).bfloat16()
    assert weights[-3000] == torch.tensor(1 / 3000).bfloat16()  # the hub's own loop


@pytest.mark.parametrize("equivstable_pe", [False, True])
@pytest.mark.parametrize("local", ["GINE", "CustomGatedGCN"])
def test_messages_in_bfloat16_are_added_up_in_float32(local: str, equivstable_pe: bool) -> None:
    star = torch.stack([torch.arange(1, 1000), torch.zeros(999, dtype=torch.long)])
    x, edge_attr, distance = torch.randn(1000, DIM), torch.randn(999, DIM), torch.rand(999, 1)
    settings = LocalSettings(DIM, edge_dim=DIM, equivstable_pe=equivstable_pe)
    exact = build_local(local, settings).eval()
    rough = copy.deepcopy(exact).bfloat16()
    graph = torch.zeros(1000, dtype=torch.long)
    expected, _ = exact(x, star, edge_attr, Layout.of(graph, distance=distance))
    layout = Layout.of(graph, distance=distance.bfloat16())
    with RefuseHalfSums():
        found, _ = rough(x.bfloat16(), star, edge_attr.bfloat16(), layout)
    assert found.dtype == torch.bfloat16
    assert (found.float() - expected).abs().max() < 0.05 * expected.abs().max()


@every_pair
def test_copies_and_saved_weights_give_the_same(local: str, attention: str) -> None:
    layer = _layer(local, attention).eval()
    arguments = packed_graphs().arguments()
    expected, _ = layer(*arguments)
    assert torch.equal(copy.deepcopy(layer)(*arguments)[0], expected)
    fresh = build_gps_layer(DIM, local, attention, heads=HEADS, edge_dim=DIM).double().eval()
    fresh.load_state_dict(layer.state_dict())
    assert torch.equal(fresh(*arguments)[0], expected)


@pytest.mark.parametrize("local", ["GAT", "GENConv", "PNA", "GCN", "GIN", "None"])
def test_edge_features_are_optional_where_the_convolution_allows(local: str) -> None:
    layer = _layer(local, "Transformer", edge_dim=None)
    graphs = packed_graphs()
    x, _ = layer(graphs.x, graphs.edge_index, None, graphs.layout())
    again, _ = layer(*graphs.arguments())  # features that nobody encoded are not read
    assert torch.equal(x, again)


@pytest.mark.parametrize(
    ("local", "by_distance"),
    [("GINE", False), ("GINE", True), ("GAT", False), ("GENConv", False), ("PNA", False)],
)
def test_edge_features_may_have_another_width(local: str, by_distance: bool) -> None:
    layer = build_gps_layer(DIM, local, "None", heads=HEADS, edge_dim=3, equivstable_pe=by_distance).double()
    x, _ = layer(*packed_graphs(edge_dim=3).arguments())
    assert x.isfinite().all()


def test_branches_that_are_absent_have_no_norm() -> None:
    def names(layer: GPSLayer) -> set[str]:
        return {name.split(".")[0] for name, _ in layer.named_parameters()}

    assert names(_layer("None", "Transformer")) == {"attention", "norm_attention", "feed_forward", "norm"}
    assert names(_layer("GIN", "None")) == {"local", "norm_local", "feed_forward", "norm"}


def test_dropout_reaches_every_branch_in_training_alone() -> None:
    graphs = packed_graphs()
    for pair in (("GINE", "None"), ("None", "Transformer"), ("CustomGatedGCN", "Transformer")):
        layer = _layer(*pair, dropout=0.5)
        assert not torch.equal(layer(*graphs.arguments())[0], layer(*graphs.arguments())[0])
        layer.eval()
        assert torch.equal(layer(*graphs.arguments())[0], layer(*graphs.arguments())[0])


def test_attention_bias_passes_through() -> None:
    layer, graphs = _layer("GINE", "Transformer"), packed_graphs((4, 3))
    bias = torch.zeros(2, HEADS, 4, 4, dtype=torch.float64, requires_grad=True)
    plain, _ = layer(*graphs.arguments())
    biased, _ = layer(*graphs.arguments(), attn_bias=bias)
    torch.testing.assert_close(biased, plain, rtol=1e-12, atol=1e-12)
    biased.sin().sum().backward()
    assert bias.grad is not None
    assert bias.grad[0].abs().max() > 0


def test_degree_norms_are_computed_once_for_all_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    import graphgps_pearl.layers.local as module

    calls, true = [], module.gcn_norm
    monkeypatch.setattr(module, "gcn_norm", lambda *args, **kwargs: calls.append(1) or true(*args, **kwargs))
    layers = [build_gps_layer(DIM, "GCN", "None").double() for _ in range(3)]
    x, edge_index, edge_attr, layout = packed_graphs().arguments()
    for layer in layers:
        x, edge_attr = layer(x, edge_index, edge_attr, layout)
    assert len(calls) == 1


def test_graph_wise_layer_norm_is_over_nodes_and_features() -> None:
    graphs = packed_graphs((4, 3))
    out = Norm(DIM, "layer").double()(graphs.x, graphs.layout())
    for number in range(2):
        rows = out[graphs.index == number]
        assert abs(rows.mean().item()) < 1e-12
        assert abs(rows.var(unbiased=False).item() - 1) < 1e-4
    with pytest.raises(ValueError, match="batch, layer or none"):
        Norm(DIM, "group")


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("local", [name for name in LOCAL_MODELS if name != "None"])
def test_message_passing_alone(local: str, residual: bool) -> None:
    settings = LocalSettings(DIM, edge_dim=DIM, heads=HEADS, residual=residual)
    layer = MessagePassingLayer(local, settings).double()
    graphs = packed_graphs()
    x, edge_attr = layer(*graphs.arguments())
    update, new_edges = layer.local(*graphs.arguments())
    expected = update if local == "CustomGatedGCN" else update.relu()
    torch.testing.assert_close(x, graphs.x + expected if residual else expected)
    torch.testing.assert_close(edge_attr, new_edges)
    (x.sin().sum() + edge_attr.sin().sum()).backward()
    assert all(p.grad is not None for p in layer.parameters())


def test_the_gate_of_gine_has_graphgps_relu_whatever_the_activation() -> None:
    gate = _layer("GINE", "None", act="gelu", equivstable_pe=True).local.conv.gate
    assert isinstance(gate.mlp[1], nn.ReLU)


def test_torchs_update_bn_sets_the_statistics_of_the_data() -> None:
    ours, theirs = BatchNorm(3), PyGBatchNorm(3)
    batches = [5 + 2 * torch.randn(n, 3) for n in (8, 20)]
    for norm in (ours, theirs):
        norm(torch.randn(9, 3))
        update_bn(batches, norm)
        assert norm.module.momentum == 0.1
    torch.testing.assert_close(ours.module.running_mean, theirs.module.running_mean)
    torch.testing.assert_close(ours.module.running_var, theirs.module.running_var)
