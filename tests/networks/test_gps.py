"""Networks from plain modules: the same as those of a config, and usable without one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.network_configs import batch_of
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINEConv, SAGEConv

from graphgps_pearl import BPEARL, GPS, RPEARL, GPSLayer, config, networks
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import MultiheadAttention, PairBiasProjection
from graphgps_pearl.networks import GraphHead, san_mlp

ROOT = Path(__file__).resolve().parents[2]


def _mlp(dim: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))


def zinc_bpearl() -> GPS:
    """configs/zinc-bpearl.yaml in plain modules."""
    dim, heads, depth, dim_pe = 64, 4, 10, 28
    encoding = BPEARL(
        dim_pe,
        32,
        2,
        num_taps=20,
        gso="random_walk",
        pool="sum+self",
        scale=True,
        tap_diagonal=True,
        return_pairs=True,
    )
    return GPS(
        [
            GPSLayer(dim, GINEConv(_mlp(dim)), MultiheadAttention(dim, heads, dropout=0.5))
            for _ in range(depth)
        ],
        GraphHead("add", san_mlp(dim, 1)),
        node_encoder=nn.Embedding(28, dim - dim_pe),
        edge_encoder=nn.Embedding(4, dim),
        encoding=encoding,
        pair_bias=PairBiasProjection(dim_pe, heads, depth),
        pair_edges=nn.Linear(dim_pe, dim, bias=False),
    )


def zinc_none() -> GPS:
    """configs/zinc-none.yaml in plain modules."""
    dim = 64
    layers = [
        GPSLayer(dim, GINEConv(_mlp(dim)), MultiheadAttention(dim, heads=4, dropout=0.5)) for _ in range(10)
    ]
    return GPS(layers, GraphHead("add", san_mlp(dim, 1)), nn.Embedding(28, dim), nn.Embedding(4, dim))


@pytest.mark.parametrize(("name", "make"), [("zinc-none", zinc_none), ("zinc-bpearl", zinc_bpearl)])
def test_equals_the_network_of_the_config(name: str, make: object) -> None:
    cfg = config.load(ROOT / "configs" / f"{name}.yaml")
    theirs, ours = networks.build(cfg, 1, 1).double(), make().double()  # type: ignore[operator]
    assert networks.count_parameters(ours) == networks.count_parameters(theirs)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert a.shape == b.shape
            a.copy_(0.2 * torch.randn(a.shape, generator=generator, dtype=torch.float64))
            b.copy_(a)
    batch = batch_of(cfg, (6, 1, 9, 3))
    arguments = (batch.x[:, 0], batch.edge_index, batch.edge_attr, batch.batch)
    for training in (True, False):  # the same draws of dropout too
        theirs.train(training), ours.train(training)
        torch.manual_seed(1)
        expected, _ = theirs(batch)
        torch.manual_seed(1)
        actual = ours(*arguments)
        torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
    for module in (ours, theirs):
        module.zero_grad()
    ours(*arguments).sum().backward()
    theirs(batch)[0].sum().backward()
    for (path, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-8, atol=1e-8, msg=path)


@pytest.mark.parametrize("make", [GCNConv, SAGEConv, lambda a, b: GATConv(a, b, edge_dim=3)])
def test_any_convolution_of_pyg_is_a_local_model(make: object) -> None:
    layers = [GPSLayer(8, make(8, 8), None), GPSLayer(8, make(8, 8), MultiheadAttention(8, 2))]  # type: ignore[operator]
    model = GPS(layers, GraphHead("mean", nn.Linear(8, 2)), nn.Linear(5, 4), encoding=RPEARL(4, 8, 2))
    x, edge_index, edge_attr = (
        torch.randn(6, 5),
        torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]),
        torch.randn(4, 3),
    )
    out = model(x, edge_index, edge_attr, torch.tensor([0, 0, 1, 1, 1, 1]), num_graphs=3)
    assert out.shape == (3, 2)
    out.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    model.eval()
    one = model(x[:2], edge_index[:, :2], edge_attr[:2])  # one graph without a batch vector
    torch.testing.assert_close(one, model(x, edge_index, edge_attr, torch.tensor([0, 0, 1, 1, 1, 1]))[:1])


def test_what_does_not_fit_is_refused() -> None:
    layers, head = [GPSLayer(8, None, MultiheadAttention(8, 2))], GraphHead("add", nn.Linear(8, 1))
    with pytest.raises(ValueError, match="there is none"):
        GPS(layers, head, pair_edges=nn.Linear(4, 8))
    without = GPS(layers, head, nn.Linear(3, 4), encoding=BPEARL(4, 8, 1), pair_edges=nn.Linear(4, 8))
    with pytest.raises(ValueError, match="return_pairs=True"):
        without(torch.randn(2, 3), torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ConfigError, match="None\\+None"):
        GPSLayer(8, None, None)
    with pytest.raises(ConfigError, match=r"'sum'.*add"):
        GraphHead("sum", nn.Linear(8, 1))


@pytest.mark.parametrize("number", [2, 4])
def test_a_bias_for_another_number_of_layers_is_refused(number: int) -> None:
    """More of them would have weights that are never read."""
    layers = [GPSLayer(8, GCNConv(8, 8), MultiheadAttention(8, 2)) for _ in range(3)]
    encoding = BPEARL(4, 8, 1, return_pairs=True)
    head = GraphHead("add", nn.Linear(8, 1))
    network = GPS(layers, head, encoding=encoding, pair_bias=PairBiasProjection(4, 2, number))
    with pytest.raises(ValueError, match=f"each of {number} layers, and the network has 3; give one for all"):
        network(torch.randn(3, 4), torch.tensor([[0, 1], [1, 0]]))


def test_it_needs_neither_yacs_nor_lightning() -> None:
    code = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("yacs", "lightning", "torchmetrics", "ogb", "rdkit", "yaml"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Blocker())
from graphgps_pearl import GPS, GPSLayer, BPEARL, RPEARL
print(GPS.__name__, GPSLayer.__name__, BPEARL.__name__, RPEARL.__name__)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.stdout.split() == ["GPS", "GPSLayer", "BPEARL", "RPEARL"], done.stderr


def test_the_example_of_the_documentation_is_the_zinc_network() -> None:
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    example = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "GPS(" in block)
    scope: dict[str, object] = {}
    exec(compile(example, "docs/models.md", "exec"), scope)
    model = scope["model"]
    assert isinstance(model, GPS)
    assert networks.count_parameters(model) == networks.count_parameters(zinc_bpearl())
