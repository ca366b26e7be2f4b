"""How the modules behave in the hands of a user: shapes, odd graphs, precision, saving."""

from __future__ import annotations

import ast
import copy
import io
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers.graphs import awkward_batch, batch_of, molecule_like, random_graph
from torch import Tensor
from torch_geometric.data import Data

import graphgps_pearl.pearl
from graphgps_pearl.pearl import ACTIVATIONS, BPEARL, RPEARL, Phi, TapLayer, draw_samples
from graphgps_pearl.pearl.signals import make_key
from graphgps_pearl.vocabulary import POOLS

EDGES = random_graph(7)
NO_EDGES = torch.empty(2, 0, dtype=torch.long)
KINDS = pytest.mark.parametrize("kind", [BPEARL, RPEARL])
SMALL: dict[str, Any] = {"dim_pe": 5, "hidden_dim": 6, "num_layers": 2}


@KINDS
def test_prepared_graphs_keep_the_numbers_of_their_nodes(kind: type) -> None:
    module = kind(**SMALL).eval()
    data = Data(edge_index=EDGES, num_nodes=7, n_id=torch.arange(7) + 90)
    assert torch.equal(module(module.prepare(data)), module(data))
    other = module(data, node_id=torch.arange(7)) if kind is RPEARL else module(EDGES)
    prepared = {"node_id": torch.arange(7)} if kind is RPEARL else {}
    assert torch.equal(module(module.prepare(data), **prepared), other)


@KINDS
@pytest.mark.parametrize("pool", [*POOLS, "mean+std", "sum+max", "mean+sum+var+std+max"])
def test_every_pool_gives_dim_pe_columns(kind: type, pool: str) -> None:
    assert kind(pool=pool, **SMALL)(EDGES).shape == (7, 5)


@KINDS
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("edges", "batch", "num_nodes", "expected"),
    [
        (NO_EDGES, None, 1, 1),
        (NO_EDGES, None, 4, 4),
        (NO_EDGES, None, 0, 0),
        (NO_EDGES, torch.empty(0, dtype=torch.long), None, 0),
        (EDGES, None, 9, 9),
        (*awkward_batch(), None, 10),
        (torch.tensor([[0, 0, 1], [1, 1, 1]]), None, None, 2),
    ],
    ids=["single node", "no edges", "no nodes", "empty batch", "isolated", "awkward batch", "multigraph"],
)
def test_odd_graphs(
    kind: type, training: bool, edges: Tensor, batch: Tensor | None, num_nodes: int | None, expected: int
) -> None:
    for norm, pool in product(("batch", "layer", "graph"), ("mean+std", "max")):
        pe = kind(norm=norm, pool=pool, scale=True, num_taps=3, **SMALL).train(training)
        p = pe(edges, batch, num_nodes)
        assert p.shape == (expected, 5)
        assert bool(p.isfinite().all())
        p.sum().backward()
        assert all(bool(q.grad.isfinite().all()) for q in pe.parameters() if q.grad is not None)


@KINDS
@pytest.mark.parametrize("norm", ["batch", "layer", "none", "graph"])
def test_every_parameter_receives_a_gradient(kind: type, norm: str) -> None:
    data = batch_of((EDGES, 7), (molecule_like(12), 12))
    for pool, skip, num_taps in product(
        (*POOLS, "mean+std", "var+std"), ("none", "residual", "sum"), (0, 1, 3)
    ):
        if norm == "graph" and num_taps == 0:
            continue
        torch.manual_seed(0)
        pe = kind(norm=norm, pool=pool, skip=skip, num_taps=num_taps, act="gelu", **SMALL).double()
        p = pe(data.edge_index, data.batch)
        (p * torch.randn_like(p)).sum().backward()
        for name, parameter in pe.named_parameters():
            assert parameter.grad is not None, name
            assert float(parameter.grad.abs().max()) > 1e-12, (name, pool, skip, num_taps)


def test_linear_maps_before_a_batch_norm_have_no_bias() -> None:
    for norm, expected in (("batch", 0), ("graph", 0), ("layer", 5), ("none", 5)):
        pe = BPEARL(norm=norm, **SMALL)
        names = [name for name, _ in pe.phi.layers.named_parameters() if "norm" not in name]
        assert sum("bias" in name for name in names) == expected  # a tap layer, two GIN layers of two maps


def test_only_the_readout_of_a_variance_lacks_its_bias() -> None:
    """The variance over the samples ignores a constant, but an activation in between does not."""
    phi = RPEARL(4, 8, 2, pool="var", norm="none").phi
    assert all(linear.bias is not None for layer in phi.layers[1:] for linear in layer.linears)
    assert phi.readout.bias is None
    last = RPEARL(4, 8, 2, pool="var", norm="none", end="linear").phi.layers[-1].linears
    assert last[0].bias is not None and last[-1].bias is None


def test_epsilon_starts_at_zero() -> None:
    assert all(float(layer.eps.detach()) == 0 for layer in BPEARL(**SMALL).phi.layers[1:])


@KINDS
def test_scale_divides_by_root_n_and_layers(kind: type) -> None:
    pe = kind(**SMALL, scale=False).double().eval()
    data = batch_of((EDGES, 7), (molecule_like(12), 12))
    plain = pe(data.edge_index, data.batch)
    pe.scale = True
    n = torch.tensor([7.0] * 7 + [12.0] * 12, dtype=torch.float64)
    torch.testing.assert_close(pe(data.edge_index, data.batch), plain / (n.sqrt() * 3).unsqueeze(1))


def test_given_samples_decide_everything() -> None:
    pe = RPEARL(**SMALL).eval()
    samples = torch.randn(7, 3)
    mean = torch.stack([pe(EDGES, samples=samples[:, m : m + 1]) for m in range(3)]).mean(0)
    torch.testing.assert_close(pe(EDGES, samples=samples), mean)
    pe.train()
    with torch.no_grad():
        assert torch.equal(pe(EDGES, samples=samples), pe(EDGES, samples=samples.double()))


def test_max_of_samples_and_the_mean_of_tables() -> None:
    pe = RPEARL(num_samples=4, num_eval_draws=3, pool="max", **SMALL).eval()
    tables = [draw_samples("gaussian", make_key(0, table), torch.arange(7), 0, 4) for table in range(3)]
    expected = torch.stack([pe(EDGES, samples=samples) for samples in tables])
    torch.testing.assert_close(pe(EDGES), expected.mean(0))


@KINDS
def test_float64_and_autocast(kind: type) -> None:
    pe = kind(num_taps=3, pool="mean+std", **SMALL)
    data = batch_of((EDGES, 7), (molecule_like(12), 12))
    assert pe.double().eval()(data.edge_index, data.batch).dtype == torch.float64
    pe.float()
    expected = pe(data.edge_index, data.batch)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual = pe(data.edge_index, data.batch)
    assert actual.dtype == torch.float32
    torch.testing.assert_close(actual, expected, rtol=0.1, atol=0.05)
    pe.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = pe(data.edge_index, data.batch).square().sum()
    loss.backward()
    assert all(bool(p.grad.isfinite().all()) for p in pe.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@KINDS
def test_cuda(kind: type) -> None:
    pe = kind(num_taps=3, **SMALL).eval()
    expected = pe(EDGES)
    torch.testing.assert_close(pe.cuda()(EDGES.cuda()).cpu(), expected, rtol=1e-3, atol=1e-4)


@KINDS
def test_save_load_and_copy(kind: type) -> None:
    pe = kind(pool="mean+std", **SMALL)
    pe(EDGES).sum().backward()
    file = io.BytesIO()
    torch.save(pe.state_dict(), file)
    file.seek(0)
    other = kind(pool="mean+std", **SMALL)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.eval()(EDGES), pe.eval()(EDGES))
    twin = copy.deepcopy(pe)
    assert torch.equal(twin(EDGES), pe(EDGES))
    assert all(a is not b for a, b in zip(twin.parameters(), pe.parameters(), strict=True))


@KINDS
def test_reset_parameters_draws_what_the_constructor_draws(kind: type) -> None:
    torch.manual_seed(0)
    pe = kind(pool="mean+std", norm="graph", **SMALL)
    pe(EDGES)
    with torch.no_grad():
        for parameter in pe.parameters():
            parameter.fill_(7)
    pe.reset_parameters()
    assert all(float((parameter == 7).sum()) == 0 for parameter in pe.parameters())
    assert all(bool((b == 0).all() or (b == 1).all()) for b in pe.buffers())
    assert all(float(layer.eps.detach()) == 0 for layer in pe.phi.layers[1:])


def test_repr_says_what_it_is() -> None:
    text = repr(
        RPEARL(16, num_samples=50, hidden_dim=8, num_layers=3, num_taps=4, distribution="sobol", scale=True)
    )
    for part in (
        "RPEARL(16",
        "num_samples=50",
        "distribution='sobol'",
        "gso='sym_laplacian'",
        "pool='mean'",
        "scale=True",
    ):
        assert part in text
    assert "[TapLayer(1, 8, num_taps=4, act='relu', norm=BatchNorm)" in text
    assert "3 x GINLayer(8, 8, mlp_layers=2, act='relu', norm=BatchNorm)]" in text
    assert repr(BPEARL(4)).startswith("BPEARL(4, gso=")


def test_activations_are_named_and_can_be_pickled() -> None:
    file, edge_index = io.BytesIO(), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    modules = [BPEARL(act=act, **SMALL).eval() for act in ACTIVATIONS]
    torch.save(modules, file)
    file.seek(0)
    for module, loaded in zip(modules, torch.load(file, weights_only=False), strict=True):
        torch.testing.assert_close(loaded(edge_index, num_nodes=3), module(edge_index, num_nodes=3))


def test_pearl_imports_nothing_but_torch() -> None:
    allowed = set(sys.stdlib_module_names) | {"torch"}
    own = tuple(f"graphgps_pearl.{name}" for name in ("pearl", "vocabulary", "switches", "compiled"))
    for file in Path(graphgps_pearl.pearl.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                assert name.split(".")[0] in allowed or name.startswith(own), (
                    file.name,
                    name,
                )


def test_pairs_print_their_shapes() -> None:
    _, pairs = BPEARL(return_pairs=True, **SMALL)(EDGES)
    assert repr(pairs) == f"PairEncoding(value=[{pairs.value.size(0)}, 5], row=[49])"


def test_one_import_is_enough_in_a_notebook() -> None:
    code = "import sys, graphgps_pearl; assert 'torch' not in sys.modules; graphgps_pearl.pearl.BPEARL(4)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.parametrize("kind", [RPEARL, BPEARL])
def test_a_pyg_data_instead_of_its_parts(kind: type) -> None:
    torch.manual_seed(0)
    pe = kind(**SMALL).eval()
    batch = batch_of((molecule_like(9), 9), (molecule_like(5), 5))
    assert torch.equal(pe(batch), pe(batch.edge_index, batch.batch, batch.num_nodes))
    batch.edge_weight = torch.full((batch.edge_index.size(1),), 2.0)
    weighted = pe(batch.edge_index, batch.batch, batch.num_nodes, edge_weight=batch.edge_weight)
    assert torch.equal(pe(batch), weighted)
    assert not torch.allclose(weighted, pe(batch.edge_index, batch.batch))


def test_bpearl_is_of_order_one_on_graphs_of_any_size() -> None:
    """The plain sum grows with the graph (30 at 13 nodes, 850 at 3,000); scaled it does not."""
    for n in (13, 100, 400):
        torch.manual_seed(0)
        pe = BPEARL(dim_pe=16, hidden_dim=40, num_layers=8, num_taps=4).requires_grad_(False)
        assert 0.3 < float(pe(molecule_like(n)).square().mean().sqrt()) < 3
        pe.scale = False
        assert float(pe(molecule_like(n)).square().mean().sqrt()) > 10


def test_gradients_of_given_samples_go_through_the_tap_moments() -> None:
    options = {"norm": "none", "act": "tanh", "gso": "sym_adjacency", "num_taps": 3, "tap_moments": True}
    module = RPEARL(dim_pe=3, hidden_dim=4, num_layers=1, **options).double()
    samples = torch.randn(7, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda q: module(EDGES, samples=q), (samples,))


class Doubled(torch.nn.Module):
    """A layer of a user's own: nothing of ours but the call."""

    in_dim = out_dim = 4

    def forward(self, x: Tensor, rows: Any) -> Tensor:
        """Twice the neighbours' sum."""
        return 2 * rows.neighbours(x)


def test_a_layer_need_not_be_derived_from_ours() -> None:
    lift = TapLayer(1, 4, num_taps=2)
    pairs = BPEARL.from_phi(Phi([lift]), pool="sum", gso="adjacency")
    twice = BPEARL.from_phi(Phi([lift, Doubled()]), pool="sum", gso="adjacency")
    adjacency = torch.zeros(7, 7).index_put_((EDGES[1], EDGES[0]), torch.ones(EDGES.size(1)), accumulate=True)
    torch.testing.assert_close(twice(EDGES), 2 * adjacency @ pairs(EDGES))
