"""The diagonal and the pairs of B-PEARL: RWSE and RRWP among them, equal by every path, equivariant."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers import oracle
from helpers.graphs import awkward_batch, batch_of, dense_adjacency, molecule_like
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddRandomWalkPE

from graphgps_pearl.pearl import BPEARL, RPEARL, PairEncoding, Phi, TapLayer, encode_pairs
from graphgps_pearl.switches import use_kernels
from graphgps_pearl.vocabulary import OPERATORS

POOLS = ["self", "sum+self", "mean+self", "max+self+std"]


def molecules() -> tuple[Tensor, Tensor]:
    data = batch_of(*[(molecule_like(n, seed), n) for n, seed in ((24, 0), (9, 1), (17, 2), (24, 0))])
    return data.edge_index, data.batch


BATCHES = {"awkward": awkward_batch(), "molecules": molecules()}


def build(training: bool = True, **options: object) -> BPEARL:
    torch.manual_seed(0)
    sizes = {"dim_pe": 2, "hidden_dim": 3, "num_layers": 2, "num_taps": 3, "act": "tanh", "quotient": True}
    module = BPEARL(**(sizes | {"return_pairs": True} | options)).double()
    for tensor in module.state_dict().values():
        tensor.add_(0.3 * torch.rand_like(tensor))
    return module.train(training)


def taps_alone(num_taps: int, gso: str = "random_walk") -> BPEARL:
    """Φ(G, q) = (q, S q, ..., S^(K-1) q), with no GIN layer and nothing nonlinear."""
    layer = TapLayer(1, num_taps, num_taps, act="identity").double()
    with torch.no_grad():
        layer.weight.copy_(torch.eye(num_taps).unsqueeze(1))
    return BPEARL.from_phi(Phi([layer]).double(), gso=gso, pool="self", return_pairs=True)


def test_rwse_is_the_diagonal_of_the_taps() -> None:
    edges = molecule_like(24, 0)
    p, _ = taps_alone(21)(edges, num_nodes=24)
    A = dense_adjacency(edges, 24)
    walk = A / A.sum(1, keepdim=True)
    direct = torch.stack([torch.linalg.matrix_power(walk, k).diag() for k in range(21)], dim=1)
    assert (p - direct).abs().max() < 1e-10
    rwse = AddRandomWalkPE(20)(Data(edge_index=edges, num_nodes=24)).random_walk_pe
    assert (p[:, 1:] - rwse).abs().max() < 1e-6  # in float32


def test_rrwp_is_the_taps_of_all_pairs() -> None:
    edges, batch = molecules()
    _, pairs = taps_alone(8)(edges, batch)
    dense = pairs.to_dense()
    for g in batch.unique().tolist():
        nodes = (batch == g).nonzero().flatten()
        inside = batch[edges[0]] == g
        A = dense_adjacency(edges[:, inside] - nodes[0], len(nodes))
        walk = A / A.sum(1, keepdim=True)
        rrwp = torch.stack([torch.linalg.matrix_power(walk, k) for k in range(8)], dim=-1)
        # row v, column m of ours is a walk from m to v
        assert (dense[nodes, : len(nodes)] - rrwp.transpose(0, 1)).abs().max() < 1e-10


def test_rwse_through_the_plain_constructor() -> None:
    """The same with the ReLU and the readout that every B-PEARL has: walks are never negative."""
    options = {"num_layers": 0, "num_taps": 20, "gso": "random_walk", "norm": "none", "pool": "self"}
    module = BPEARL(20, hidden_dim=20, scale=False, **options).double()
    with torch.no_grad():
        module.phi.layers[0].weight.copy_(torch.eye(20).unsqueeze(1))
        module.phi.layers[0].bias.zero_()
        module.phi.readout.weight.copy_(torch.eye(20))
        module.phi.readout.bias.zero_()
    edges = molecule_like(17, 2)
    assert (module(edges, num_nodes=17) - taps_alone(20)(edges, num_nodes=17)[0]).abs().max() < 1e-10


@pytest.mark.parametrize("data", BATCHES)
@pytest.mark.parametrize("pool", POOLS)
def test_the_diagonal_equals_the_oracle(data: str, pool: str) -> None:
    for gso, tap_diagonal, scale in zip(OPERATORS, (True, False) * 3, (False, False, True) * 2, strict=False):
        module = build(pool=pool, gso=gso, tap_diagonal=tap_diagonal, scale=scale, return_pairs=False)
        oracle.assert_matches(module, *BATCHES[data])
        oracle.assert_matches(module.eval(), *BATCHES[data])


@pytest.mark.parametrize("data", BATCHES)
@pytest.mark.parametrize("norm", ["batch", "graph", "layer", "none"])
def test_pairs_equal_the_oracle_by_both_paths(data: str, norm: str) -> None:
    edges, batch = BATCHES[data]
    for num_taps, num_layers in ((3, 2), (1, 3), (4, 0)):
        fast = build(norm=norm, num_taps=num_taps, num_layers=num_layers, pool="sum+self")
        slow = copy.deepcopy(fast)
        slow.quotient = False
        outputs = [module(edges, batch) for module in (fast, slow)]
        expected = oracle.pairs(copy.deepcopy(fast), edges, batch)
        sizes = batch.bincount().tolist()
        direction = torch.randn(sum(sizes), max(sizes), 2, dtype=torch.double)
        gradients = []
        for module, (p, pairs) in zip((fast, slow), outputs, strict=True):
            dense = pairs.to_dense()
            start = 0
            for n, values in zip([n for n in sizes if n], expected, strict=True):
                oracle.close(dense[start : start + n, :n], values, "pairs")
                assert not dense[start : start + n, n:].any()
                start += n
            loss = (dense * direction).sum() + p.sum()
            gradients.append(torch.autograd.grad(loss, list(module.parameters()), allow_unused=True))
        for (name, _), a, b in zip(fast.named_parameters(), *gradients, strict=True):
            oracle.close(a, b, f"gradient of {name}")


def test_rows_are_shared_and_never_written_out() -> None:
    edges, batch = molecules()
    with use_kernels(True):
        _, pairs = build(num_taps=1)(edges, batch)
    assert pairs.row.numel() == int(batch.bincount().square().sum())
    assert pairs.value.size(0) < pairs.row.numel()
    assert int(pairs.row.max()) == pairs.value.size(0) - 1


def test_values_of_edges() -> None:
    edges, batch = molecules()
    _, pairs = build()(edges, batch)
    dense = pairs.to_dense()
    position = pairs.graphs.position
    oracle.close(pairs.of_edges(edges), dense[edges[1], position[edges[0]]], "values of the edges")


def test_equivariance() -> None:
    edges = molecule_like(17, 2)
    module = build(False, pool="sum+self", tap_diagonal=True)
    p, pairs = module(edges, num_nodes=17)
    order = torch.randperm(17, generator=torch.Generator().manual_seed(0))
    q, moved = module(order[edges], num_nodes=17)
    oracle.close(q[order], p, "diagonal")
    oracle.close(moved.to_dense()[order][:, order], pairs.to_dense(), "pairs")


def test_batching_changes_nothing() -> None:
    edges, batch = molecules()
    module = build(False, pool="sum+self", tap_diagonal=True)
    p, pairs = module(edges, batch)
    dense = pairs.to_dense()
    for g in range(4):
        nodes = (batch == g).nonzero().flatten()
        alone, own = module(edges[:, batch[edges[0]] == g] - nodes[0], num_nodes=len(nodes))
        oracle.close(alone, p[nodes], "encoding")
        oracle.close(own.to_dense(), dense[nodes, : len(nodes)], "pairs")


def ring(n: int) -> Tensor:
    v = torch.arange(n)
    return torch.stack([torch.cat([v, (v + 1) % n]), torch.cat([(v + 1) % n, v])])


@pytest.mark.parametrize("pool", ["self", "sum+self"])
def test_the_diagonal_tells_apart_what_1_wl_does_not(pool: str) -> None:
    """Two triangles and a hexagon: regular, and alike to 1-WL."""
    triangles = torch.cat([ring(3), ring(3) + 3], dim=1)
    module = build(False, pool=pool)
    one, _ = module(ring(6), num_nodes=6)
    two, _ = module(triangles, num_nodes=6)
    assert (one.sum(0) - two.sum(0)).abs().max() > 1e-3


def test_every_parameter_has_a_gradient() -> None:
    module = build(pool="sum+self", tap_diagonal=True)
    p, _ = module(*molecules())
    p.square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_bad_settings_say_what_to_do() -> None:
    with pytest.raises(ValueError, match="num_taps of at least 2, got 1"):
        BPEARL(4, tap_diagonal=True)
    with pytest.raises(ValueError, match="unknown pool 'self'"):
        RPEARL(4, pool="self")


def test_reset_draws_everything_afresh() -> None:
    module = build(pool="sum+self", tap_diagonal=True)
    module(*molecules())
    module.reset_parameters()
    assert torch.equal(module.tap_norm.running_mean, torch.zeros(2).double())
    assert isinstance(module(*molecules())[1], PairEncoding)


def test_pairs_of_a_phi_as_a_function() -> None:
    pe = BPEARL(3, hidden_dim=4, num_layers=2, num_taps=3, gso="random_walk", return_pairs=True).double()
    edges = molecule_like(9)
    found = encode_pairs(pe.phi, edges, num_nodes=9, gso="random_walk")
    torch.testing.assert_close(found.to_dense(), pe(edges, num_nodes=9)[1].to_dense())
