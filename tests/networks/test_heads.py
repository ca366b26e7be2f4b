"""Heads, pooling and the layers before message passing against GraphGym's."""

from __future__ import annotations

import pytest
import torch
from helpers.half_sums import RefuseHalfSums
from helpers.network_configs import ZINC, make
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym import register
from torch_geometric.graphgym.models.gnn import GNNPreMP
from torch_geometric.graphgym.models.head import GNNGraphHead

from graphgps_pearl import config, networks
from graphgps_pearl.errors import ConfigError


def _batch(dim: int = 8) -> Batch:
    graphs = [
        Data(x=torch.randn(n, dim), edge_index=torch.empty(2, 0).long(), y=torch.randn(1, 3)) for n in (4, 2)
    ]
    return Batch.from_data_list(graphs)


def _head(name: str, *words: object) -> nn.Module:
    cfg = make(
        ZINC, "gnn.head", name, "gnn.dim_inner", 8, "gt.dim_hidden", 8, "posenc_RWSE.dim_pe", 4, *words
    )
    config.activate(cfg)
    return networks.build_head(cfg, 8, 3)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("name", ["graph", "default"])
def test_graph_head_is_graphgyms(name: str, num_layers: int) -> None:
    ours = _head(name, "gnn.layers_post_mp", num_layers)
    graphgyms = GNNGraphHead(8, 3)
    values = list(graphgyms.state_dict().values())
    ours.load_state_dict(dict(zip(ours.state_dict(), values, strict=True)))
    batch = _batch()
    prediction, target = ours(batch)
    expected, _ = graphgyms(batch.clone())
    torch.testing.assert_close(prediction, expected)
    assert target is batch.y


def test_san_head_halves_the_width() -> None:
    head = _head("san_graph")
    assert [tuple(m.weight.shape) for m in head.mlp if isinstance(m, nn.Linear)] == [(4, 8), (2, 4), (3, 2)]
    with pytest.raises(ConfigError, match="halves the width twice"):
        networks.build_head(make(ZINC), 3, 1)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_mlp_head_keeps_the_width_and_drops_before_every_layer(num_layers: int) -> None:
    head = _head("mlp_graph", "gnn.layers_post_mp", num_layers, "gnn.dropout", 0.25)
    shapes = [tuple(m.weight.shape) for m in head.mlp if isinstance(m, nn.Linear)]
    assert shapes == [(8, 8)] * (num_layers - 1) + [(3, 8)]
    assert [m.p for m in head.mlp if isinstance(m, nn.Dropout)] == [0.25] * num_layers


@pytest.mark.parametrize(("name", "of_rows"), [("add", torch.sum), ("mean", torch.mean), ("max", torch.amax)])
def test_pooling(name: str, of_rows: object) -> None:
    head, batch = _head("graph", "model.graph_pooling", name), _batch()
    expected = torch.stack([of_rows(batch.x[batch.batch == b], dim=0) for b in (0, 1)])  # type: ignore[operator]
    torch.testing.assert_close(head.pool(batch.x, batch.batch, 2), expected)


@pytest.mark.parametrize("head_name", ["graph", "san_graph", "mlp_graph"])
def test_several_poolings_are_concatenated(head_name: str) -> None:
    head, batch = _head(head_name, "model.graph_pooling", "max+add+mean"), _batch()
    parts = [networks.Pool(name)(batch.x, batch.batch, 2) for name in ("max", "add", "mean")]
    assert torch.equal(head.pool(batch.x, batch.batch, 2), torch.cat(parts, dim=1))
    assert head(batch)[0].shape == (2, 3)
    assert head.mlp.get_submodule("0" if head_name != "mlp_graph" else "1").in_features == 3 * 8


def test_several_poolings_with_a_registered_one() -> None:
    register.pooling_dict["first"] = lambda x, index: x[index.diff(prepend=index[:1] - 1) > 0]
    try:
        head, batch = _head("graph", "model.graph_pooling", "first+add"), _batch()
    finally:
        del register.pooling_dict["first"]
    pooled = head.pool(batch.x, batch.batch, 2)
    first = torch.searchsorted(batch.batch, torch.arange(2))
    assert torch.equal(pooled[:, :8], batch.x[first])
    assert torch.equal(pooled[:, 8:], networks.Pool("add")(batch.x, batch.batch, 2))


@pytest.mark.parametrize("name", ["add", "mean"])
def test_pooling_a_large_graph_in_bfloat16(name: str) -> None:
    """A count in bfloat16 is 256 at most on a GPU, and rounded to a multiple of 16 on a CPU."""
    pool, index = networks.Pool(name), torch.zeros(3000, dtype=torch.long)
    x = (torch.rand(3000, 8) + 1).bfloat16()
    with RefuseHalfSums():
        found = pool(x, index, 1)
    assert torch.equal(found, pool(x.float(), index, 1).bfloat16())


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize("unit_rows", [True, False])
def test_layers_before_message_passing_are_graphgyms(
    unit_rows: bool, batch_norm: bool, num_layers: int
) -> None:
    words = ("gnn.batchnorm", batch_norm, "gnn.l2norm", unit_rows, "gnn.layers_pre_mp", num_layers)
    cfg = make(ZINC, "gt.layers", 1, *words)
    config.activate(cfg)
    model = networks.build(cfg, 1, 1)
    graphgyms = GNNPreMP(64, 64, num_layers)
    model.pre_mp.load_state_dict(
        dict(zip(model.pre_mp.state_dict(), graphgyms.state_dict().values(), strict=True))
    )
    x = torch.randn(7, 64)
    torch.testing.assert_close(model.pre_mp(x), graphgyms(x))
