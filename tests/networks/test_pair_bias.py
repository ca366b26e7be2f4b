"""B-PEARL's pairs in a network: on the attention's logits and on the edges, from zero, whatever the batch."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from helpers.network_configs import SMALL, ZINC, batch_of, make
from torch import Tensor, nn
from torch_geometric.data import Batch
from yacs.config import CfgNode

from graphgps_pearl import networks
from graphgps_pearl.layers import Layout, layout
from graphgps_pearl.layers.attention import MultiheadAttention
from graphgps_pearl.layers.kernels import attention as kernel
from graphgps_pearl.pearl import BPEARL
from graphgps_pearl.switches import use_kernels

BPEARL_KEYS = (
    *("dataset.node_encoder_name", "TypeDictNode+BPEARL", "posenc_BPEARL.dim_pe", 4),
    *("posenc_BPEARL.hidden_dim", 6, "posenc_BPEARL.num_layers", 2, "posenc_BPEARL.num_taps", 3),
)
WAYS = [
    ("posenc_BPEARL.pair_bias", "shared"),
    ("posenc_BPEARL.pair_bias", "per_layer"),
    ("posenc_BPEARL.pair_edges", True),
    ("posenc_BPEARL.pair_bias", "per_layer", "posenc_BPEARL.pair_edges", True),
    ("posenc_BPEARL.pair_bias", "updated"),
]
SIZES = (6, 1, 9, 3, 9)


def build(*words: object) -> tuple[nn.Module, CfgNode]:
    cfg = make(ZINC, *SMALL[:6], "gt.attn_dropout", 0.0, *BPEARL_KEYS, *words)
    torch.manual_seed(0)
    return networks.build(cfg, 1, 1).double(), cfg


def wake(model: nn.Module) -> nn.Module:
    """The same model with projections that are no longer zero."""
    encoder = model.encoder.node_encoder.encoders[1]
    generator = torch.Generator().manual_seed(1)
    for module in (encoder.pair_bias, encoder.pair_edges):
        if module is not None:
            with torch.no_grad():
                zero = [p for p in module.parameters() if p is module.weight or not p.any()]
                for parameter in zero:
                    parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float32))
    return model


@pytest.mark.parametrize("words", WAYS)
def test_training_begins_as_without_pairs(words: tuple[object, ...]) -> None:
    model, cfg = build(*words)
    plain, _ = build()
    own = model.state_dict()
    assert set(plain.state_dict()) < set(own)
    plain.load_state_dict({name: own[name] for name in plain.state_dict()})
    batch = batch_of(cfg, SIZES)
    torch.testing.assert_close(model(batch)[0], plain(batch)[0], rtol=1e-12, atol=1e-12)
    wake(model)
    assert (model(batch)[0] - plain(batch)[0]).abs().max() > 1e-3


@pytest.mark.parametrize("words", WAYS[:-1])  # the stream waits for its bias, which begins at zero
def test_every_parameter_learns_from_the_first_step(words: tuple[object, ...]) -> None:
    model, cfg = build(*words, "posenc_BPEARL.pool", "sum+self", "posenc_BPEARL.tap_diagonal", True)
    model(batch_of(cfg, SIZES))[0].square().sum().backward()
    idle = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    # biases before a batch norm have no effect, with pairs or without
    plain, plain_cfg = build("posenc_BPEARL.pool", "sum+self", "posenc_BPEARL.tap_diagonal", True)
    plain(batch_of(plain_cfg, SIZES))[0].square().sum().backward()
    without = [n for n, p in plain.named_parameters() if p.grad is None or not p.grad.abs().max() > 0]
    assert set(idle) <= set(without)
    assert any("pair_" in name for name, _ in model.named_parameters())


@pytest.mark.parametrize("words", WAYS)
def test_neither_batching_nor_the_order_of_nodes_matters(words: tuple[object, ...]) -> None:
    model, cfg = build(*words)
    wake(model).eval()
    batch = batch_of(cfg, SIZES)
    together, _ = model(batch)
    for graph, expected in zip(batch.to_data_list(), together, strict=True):
        alone, _ = model(Batch.from_data_list([graph]))
        torch.testing.assert_close(alone[0], expected, rtol=1e-10, atol=1e-10)
        order = torch.randperm(graph.num_nodes, generator=torch.Generator().manual_seed(2))
        moved = copy.copy(graph)
        moved.x = graph.x[order.argsort()]
        moved.edge_index = order[graph.edge_index]
        again, _ = model(Batch.from_data_list([moved]))
        torch.testing.assert_close(again[0], expected, rtol=1e-10, atol=1e-10)


def dense_bias(model: nn.Module, batch: Batch) -> list[Tensor]:
    """The formula, one pair after the other: [B, H, n, n] of each layer."""
    encoder = model.encoder.node_encoder.encoders[1]
    encoding: BPEARL = encoder.encoding
    as_before, encoding.quotient = encoding.quotient, False
    _, pairs = encoding(batch.edge_index, batch.batch)
    encoding.quotient = as_before
    values = pairs.to_dense()
    heads, layers = encoder.pair_bias.heads, encoder.pair_bias.layers
    weight = encoder.pair_bias.weight.view(-1, 2, layers, heads)
    n = int(batch.batch.bincount().max())
    dense = [values.new_zeros(batch.num_graphs, heads, n, n) for _ in range(layers)]
    first = batch.ptr
    for g in range(batch.num_graphs):
        for v in range(int(first[g + 1] - first[g])):
            for m in range(int(first[g + 1] - first[g])):
                for number, bias in enumerate(dense):
                    bias[g, :, v, m] = (
                        values[first[g] + v, m] @ weight[:, 0, number]
                        + values[first[g] + m, v] @ weight[:, 1, number]
                    )
    return dense


@pytest.fixture(params=[0, 40, 10**9], ids="group cost {}".format)
def group_cost(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Graphs in groups of their own size, in a few groups with padding, and in one."""
    monkeypatch.setattr(layout, "group_cost", lambda device: request.param)
    return request.param


@pytest.fixture(params=[True, False], ids="kernels {}".format)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    """With the fast paths and without."""
    with use_kernels(request.param):
        yield


@pytest.mark.parametrize("kind", ["shared", "per_layer"])
@pytest.mark.usefixtures("kernels")
def test_the_bias_is_that_of_the_formula(kind: str, group_cost: int) -> None:
    model, cfg = build("posenc_BPEARL.pair_bias", kind)
    wake(model)
    batch = batch_of(cfg, SIZES)
    expected = dense_bias(model, batch)
    encoder = model.encoder.node_encoder.encoders[1]
    _, pairs = encoder.encoding(batch.edge_index, batch.batch)
    biases = encoder.pair_bias(pairs)
    assert len(biases) == len(expected) == (1 if kind == "shared" else 2)
    layout = Layout.of(batch.batch, batch.num_graphs)
    for bias, dense in zip(biases, expected, strict=True):
        groups = layout.grouping.groups
        assert len(groups) == {0: 4, 40: 3, 10**9: 1}[group_cost]
        for group, found in zip(groups, bias.of_groups(groups), strict=True):
            wanted = dense[group.graphs, :, : group.size, : group.size]
            node = torch.arange(group.size) < layout.sizes[group.graphs].unsqueeze(1)  # [B_g, n_g]
            key = node[:, None, None, :].expand_as(wanted)
            query = node[:, None, :, None].expand_as(wanted)
            torch.testing.assert_close(found[key & query], wanted[key & query], rtol=1e-10, atol=1e-10)
            assert (found[~key] == -torch.inf).all() and found[key].isfinite().all()


@pytest.mark.parametrize("quotient", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.usefixtures("group_cost")
def test_gradients_are_those_of_the_formula(
    quotient: bool, dropout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole network with the bias gathered from the rows, and with the bias written out.

    With dropout the kernel drops nothing, so that its backward pass is compared with torch's.
    """
    monkeypatch.setattr(kernel.compiled, "serves", lambda *_: False)  # it has other draws
    monkeypatch.setattr(kernel, "draw_signs", lambda shape, *_: (torch.ones(shape), 1.0))
    model, cfg = build("posenc_BPEARL.pair_bias", "per_layer", "gt.attn_dropout", dropout)
    wake(model)
    model.encoder.node_encoder.encoders[1].encoding.quotient = quotient
    batch = batch_of(cfg, SIZES)
    with use_kernels(True):
        fast, _ = model(batch)
    gradients = torch.autograd.grad(fast.square().sum(), list(model.parameters()))
    encoder = model.encoder.node_encoder.encoders[1]
    written = dense_bias(model, batch)
    encoder.pair_bias.forward = lambda pairs, index: written
    for module in model.modules():
        if isinstance(module, MultiheadAttention):
            assert module.dropout == dropout
            module.dropout = 0.0
    slow, _ = model(batch)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-10)
    expected = torch.autograd.grad(slow.square().sum(), list(model.parameters()))
    for (name, _), a, b in zip(model.named_parameters(), gradients, expected, strict=True):
        scale = b.abs().max().clamp(min=1)
        assert (a - b).abs().max() / scale < 1e-9, name


def test_the_value_on_an_edge_is_that_of_its_pair() -> None:
    model, cfg = build("posenc_BPEARL.pair_edges", True)
    wake(model).eval()
    batch = batch_of(cfg, SIZES)
    encoder = model.encoder.node_encoder.encoders[1]
    _, pairs = encoder.encoding(batch.edge_index, batch.batch)
    dense, (u, v) = pairs.to_dense(), batch.edge_index
    position = torch.arange(batch.num_nodes) - batch.ptr[batch.batch]
    expected = encoder.pair_edges(dense[v, position[u]])
    plain, _ = build()
    own = model.state_dict()
    plain.load_state_dict({name: own[name] for name in plain.state_dict()})
    encoded, without = model.encoder(batch.clone()), plain.eval().encoder(batch.clone())
    torch.testing.assert_close(encoded.edge_attr - without.edge_attr, expected, rtol=1e-10, atol=1e-10)


def test_a_batch_without_nodes() -> None:
    model, cfg = build(*WAYS[-1])
    empty = batch_of(cfg, (3,))
    empty.x, empty.edge_index, empty.edge_attr = empty.x[:0], empty.edge_index[:, :0], empty.edge_attr[:0]
    empty.batch, empty.ptr = empty.batch[:0], torch.zeros(2, dtype=torch.long)
    assert model.eval()(empty)[0].shape == (1, 1)
