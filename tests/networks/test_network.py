"""Whole networks: every parameter is reached, graphs do not see their batch, the batch stays as it was."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers.network_configs import SMALL, ZINC, batch_of, make, molecules
from torch import nn
from torch_geometric.data import Batch

from graphgps_pearl import networks
from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.errors import DataError
from graphgps_pearl.layers import GLOBAL_MODELS, LOCAL_MODELS
from graphgps_pearl.testing import assert_batch_invariant
from graphgps_pearl.vocabulary import MESSAGE_PASSING

GPS = [
    ("gt.layer_type", f"{local}+{attention}")
    for local in LOCAL_MODELS
    for attention in GLOBAL_MODELS
    if (local, attention) != ("None", "None")
]
CUSTOM = [("model.type", "custom_gnn", "gnn.layer_type", name) for name in MESSAGE_PASSING]
EQUIVSTABLE = [
    ("dataset.node_encoder_name", "TypeDictNode+EquivStableLapPE", *words)
    for words in (
        ("gt.layer_type", "GINE+Transformer"),
        ("gt.layer_type", "CustomGatedGCN+None"),
        ("model.type", "custom_gnn", "gnn.layer_type", "gatedgcnconv"),
    )
]
EVERYWHERE = [
    ("posenc_RWSE.inject", "every_layer"),
    ("posenc_RWSE.inject", "every_layer", "model.type", "custom_gnn", "gnn.layer_type", "gineconv"),
]
every_network = pytest.mark.parametrize("words", [*GPS, *CUSTOM, *EQUIVSTABLE, *EVERYWHERE], ids="-".join)


def _build(*words: object) -> tuple[nn.Module, object]:
    torch.manual_seed(0)
    cfg = make(ZINC, *SMALL, "gt.attn_dropout", 0.0, *words)
    return networks.build(cfg, 1, 1), cfg


@every_network
def test_one_step_reaches_every_parameter(words: tuple[str, ...]) -> None:
    model, cfg = _build(*words)
    prediction, target = model(batch_of(cfg, (6, 9, 7, 5)))
    (prediction - target).abs().mean().backward()
    assert [name for name, p in model.named_parameters() if p.grad is None] == []
    assert all(p.grad.isfinite().all() for p in model.parameters())


@every_network
def test_predictions_do_not_depend_on_the_batch(words: tuple[str, ...]) -> None:
    model, cfg = _build(*words)
    for seed in (1, 2):
        model(batch_of(cfg, (6, 4, 7), seed=seed))
    model.double().eval()
    graphs = molecules(cfg, (6, 1, 9, 3))  # type: ignore[arg-type]
    for graph in graphs:
        for name, value in graph.items():
            if torch.is_tensor(value) and value.is_floating_point():
                graph[name] = value.double()
    assert_batch_invariant(model, graphs)
    plain = [model(graph)[0] for graph in graphs]  # graphs without a batch vector
    torch.testing.assert_close(torch.cat(plain), model(Batch.from_data_list(graphs))[0], rtol=1e-9, atol=1e-9)


def test_the_callers_batch_stays_as_it_was() -> None:
    model, cfg = _build("posenc_RWSE.inject", "every_layer")
    batch = batch_of(cfg)
    before = {name: value.clone() for name, value in batch.items() if torch.is_tensor(value)}
    names = set(batch.keys())
    first, _ = model.eval()(batch)
    second, _ = model(batch)
    assert torch.equal(first, second)
    assert set(batch.keys()) == names
    assert all(torch.equal(batch[name], value) for name, value in before.items())


def test_encoding_enters_every_layer() -> None:
    model, cfg = _build("posenc_RWSE.inject", "every_layer", "gt.layers", 3)
    assert [tuple(m.weight.shape) for m in model.injections] == [(16, 4)] * 3
    counts = networks.count_parameters(model)
    plain = networks.count_parameters(networks.build(make(ZINC, *SMALL, "gt.layers", 3), 1, 1))
    # x is embedded at full width (28 types, 4 columns more), and three projections are new.
    assert counts["encoder"] - plain["encoder"] == 28 * 4 + 3 * 16 * 4
    batch = batch_of(cfg)
    expected, _ = model.eval()(batch)
    for injection in model.injections:
        changed = copy.deepcopy(injection.weight)
        nn.init.zeros_(injection.weight)
        assert not torch.allclose(model(batch)[0], expected)
        injection.weight = changed
    model.encoder.node_encoder.encoders[1].injected = False  # an encoder that does not deliver
    with pytest.raises(DataError, match="before every layer"):
        model(batch)


def test_whole_numbers_enter_the_first_linear_layer_as_they_are() -> None:
    words = ("dataset.node_encoder", False, "dataset.node_encoder_name", "Atom", "gnn.layers_pre_mp", 1)
    cfg = make(ZINC, *SMALL, *words)
    batch = batch_of(cfg)
    assert not batch.x.is_floating_point()
    assert networks.build(cfg, 1, 1)(batch)[0].isfinite().all()


def test_attention_bias_in_the_batch_reaches_every_layer() -> None:
    model, cfg = _build()
    batch = batch_of(cfg, (5, 3))
    EncoderOutput(attention_bias=[torch.zeros(2, 4, 5, 5, requires_grad=True)]).attach(batch)
    plain, _ = _build()[0].eval()(batch_of(cfg, (5, 3)))
    biased, _ = model.eval()(batch)
    torch.testing.assert_close(biased, plain)
    seen: list[bool] = []
    for layer in model.layers:
        layer.attention.register_forward_pre_hook(lambda _, args: seen.append(args[2] is not None))
    model(batch)
    assert seen == [True, True]


def test_equivstable_distances_change_the_prediction() -> None:
    model, cfg = _build(*EQUIVSTABLE[0])
    batch = batch_of(cfg)
    expected, _ = model.eval()(batch)
    nn.init.constant_(model.layers[0].local.conv.gate.mlp[2].bias, -50.0)  # no message passes
    assert not torch.allclose(model(batch)[0], expected)


def test_only_the_last_layer_leaves_its_edges_alone() -> None:
    for words in (
        ("gt.layer_type", "CustomGatedGCN+Transformer", "gt.layers", 3),
        (*CUSTOM[-1], "gnn.layers_mp", 3),
    ):
        model, _ = _build(*words)
        assert [layer.local.norm_edges is None for layer in model.layers] == [False, False, True]


@pytest.mark.parametrize("words", [("gnn.residual", True), ("gnn.stage_type", "skipsum"), ()])
def test_residuals_of_custom_gnn(words: tuple[object, ...]) -> None:
    model, _ = _build("model.type", "custom_gnn", "gnn.layer_type", "gatedgcnconv", *words)
    assert [layer.residual for layer in model.layers] == [bool(words)] * 2
    assert [layer.local.residual for layer in model.layers] == [bool(words)] * 2


def test_saved_weights_give_the_same_predictions() -> None:
    model, cfg = _build("gt.layer_type", "CustomGatedGCN+Performer")
    batch = batch_of(cfg)
    model(batch)
    expected, _ = model.eval()(batch)
    torch.manual_seed(7)
    fresh = networks.build(cfg, 1, 1).eval()
    assert not torch.allclose(fresh(batch)[0], expected)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(batch)[0], expected)
    assert torch.equal(copy.deepcopy(model)(batch)[0], expected)


def test_bfloat16_autocast_trains() -> None:
    for words in (("gt.layer_type", "GINE+Transformer"), ("gt.layer_type", "CustomGatedGCN+Performer")):
        model, cfg = _build(*words)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            prediction, target = model(batch_of(cfg))
            loss = (prediction - target).abs().mean()
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("local", ["GCN", "GIN", "GINE", "GAT", "GENConv", "PNA", "CustomGatedGCN"])
def test_edges_in_32_bits_are_read(local: str) -> None:
    model, cfg = _build("gt.layer_type", f"{local}+Transformer")
    model.eval()
    batch, narrow = batch_of(cfg), batch_of(cfg)
    narrow.edge_index, narrow.batch = narrow.edge_index.int(), narrow.batch.int()
    assert torch.equal(model(narrow)[0], model(batch)[0])
    assert narrow.edge_index.dtype == torch.int32


def test_a_network_learns() -> None:
    model, cfg = _build()
    batch = batch_of(cfg, (6, 9, 7, 5, 8, 4), seed=3)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(30):
        prediction, target = model(batch)
        loss = (prediction - target).abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("local", ["GINE", pytest.param("CustomGatedGCN", marks=pytest.mark.slow)])
def test_compiled_layers_train_as_plain_ones(local: str) -> None:
    """Without a break in the graph; ``aot_eager`` is the compiler without the generation of code."""
    results = []
    for compiled in (False, True):
        model, cfg = _build("gt.layer_type", f"{local}+Transformer", "gt.layers", 1)
        model, batch = model.double(), batch_of(cfg, (6, 9, 7, 5))
        networks.preparation(model, "cpu")(batch)
        if compiled:
            networks.compile_layers(model, backend="aot_eager", fullgraph=True)
        optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            loss = model(batch)[0].square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        results.append(model.state_dict())
    for name, plain in results[0].items():
        torch.testing.assert_close(results[1][name], plain, rtol=1e-9, atol=1e-9)
