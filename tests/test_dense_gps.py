"""The benchmark's GPS baseline computes what our layers compute, from the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from graphgps_pearl import config, networks
from graphgps_pearl.layers import Layout, build_gps_layer

ROOT = Path(__file__).resolve().parents[1]
DIM = 16


@pytest.fixture
def dense_gps(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    from baselines import dense_gps

    return dense_gps


def graphs(*sizes: int) -> Batch:
    """Rings with a chord, so that degrees differ."""
    drawn = []
    for n in sizes:
        node = torch.arange(n)
        one_way = torch.cat([torch.stack([node, (node + 1) % n]), torch.tensor([[0], [n // 2]])], dim=1)
        drawn.append(Data(edge_index=torch.cat([one_way, one_way.flip(0)], dim=1), num_nodes=n))
    return Batch.from_data_list(drawn)


def weights(ours: nn.Module) -> dict[str, Tensor]:
    """Our layer's state under the baseline's names. GatedGCN's four maps of the nodes lie in one matrix."""
    state: dict[str, Tensor] = {}
    for name, value in ours.state_dict().items():
        plain = name.replace("local.conv.", "local.").replace("lin_edges", "of_edge")
        plain = plain.replace("norm_local.batch.module", "norm_local").replace("norm.batch.module", "norm")
        plain = plain.replace("norm_attention.batch.module", "norm_attention").replace(".module.", ".")
        if "lin_nodes" not in name:
            state[plain] = value
            continue
        for part, rows in zip(("own", "sent", "at_target", "at_source"), value.chunk(4), strict=True):
            state[plain.replace("lin_nodes", part)] = rows
    return state


@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("local", ["GINE", "CustomGatedGCN"])
def test_layer(dense_gps: Any, local: str, training: bool, dtype: torch.dtype, close: float) -> None:
    torch.manual_seed(0)
    batch = graphs(5, 9, 12)
    x = torch.randn(batch.num_nodes, DIM, dtype=dtype, requires_grad=True)
    edge_attr = torch.randn(batch.num_edges, DIM, dtype=dtype, requires_grad=True)
    ours = build_gps_layer(DIM, local, "Transformer", heads=4, edge_dim=DIM).to(dtype)
    plain = dense_gps.DenseGPSLayer(DIM, local, 4, 0.0, 0.0).to(dtype)
    plain.load_state_dict(weights(ours))
    ours.train(training)
    plain.train(training)
    mine = ours(x, batch.edge_index, edge_attr, Layout.of(batch.batch))
    theirs = plain(x, batch.edge_index, edge_attr, batch.batch)
    parts = torch.randn_like(x), torch.randn_like(edge_attr)
    slopes = [
        torch.autograd.grad(sum((a * b).sum() for a, b in zip(out, parts, strict=True)), (x, edge_attr))
        for out in (mine, theirs)
    ]
    for a, b in zip((*mine, *slopes[0]), (*theirs, *slopes[1]), strict=True):
        torch.testing.assert_close(a, b, rtol=close, atol=close)


@pytest.mark.parametrize("name", ["zinc-none", "peptides-none"])
def test_network(dense_gps: Any, name: str) -> None:
    """Depth, width and dropout are the config's; the parameters of the layers as many as ours.

    GatedGCN's last layer normalises edges that nobody reads, as GraphGPS does and ours does not.
    """
    cfg = config.load(ROOT / "configs" / f"{name}.yaml")
    network = networks.build(cfg, 1 if name == "zinc-none" else 9, 1)
    plain = dense_gps.DenseGPS(cfg, network)
    idle = 2 * cfg.gt.dim_hidden if "GatedGCN" in cfg.gt.layer_type else 0

    def count(layers: nn.Module) -> int:
        return sum(p.numel() for p in layers.parameters())

    assert count(plain.layers) == count(network.layers) + idle
    assert plain.layers[0].attention.dropout == cfg.gt.attn_dropout
    assert plain.layers[0].dropout.p == cfg.gt.dropout
