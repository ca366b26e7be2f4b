"""The fast modules equal the dense reference, values and gradients, over the whole grid of options."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from helpers import oracle
from helpers.graphs import awkward_batch, batch_of, molecule_like, random_graph

from graphgps_pearl.pearl import ACTIVATIONS, BPEARL, RPEARL
from graphgps_pearl.vocabulary import OPERATORS, POOLS, SKIPS

EDGES, BATCH = awkward_batch()
SIZE = {"dim_pe": 2, "hidden_dim": 3, "num_layers": 2, "mlp_hidden": 4, "act": "tanh"}


def build(encoding: str, training: bool, **options: object) -> BPEARL | RPEARL:
    """A small module in float64 whose parameters and running statistics are nowhere special."""
    torch.manual_seed(0)
    module = (BPEARL if encoding == "B" else RPEARL)(**(SIZE | options)).double()
    for tensor in module.state_dict().values():
        tensor.add_(0.3 * torch.rand_like(tensor))
    return module.train(training)


def check(module: BPEARL | RPEARL) -> None:
    samples = None
    if isinstance(module, RPEARL):
        samples = torch.randn(len(BATCH), 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    oracle.assert_matches(module, EDGES, BATCH, samples)


@pytest.mark.parametrize(
    ("norm", "training"),
    [("batch", True), ("batch", False), ("layer", True), ("none", True), ("graph", True)],
)
@pytest.mark.parametrize("encoding", ["B", "R"])
def test_every_operator_tap_count_and_skip(encoding: str, norm: str, training: bool) -> None:
    for gso, num_taps, skip in product(OPERATORS, (0, 1, 3), SKIPS):
        if not (norm == "graph" and num_taps == 0):
            check(build(encoding, training, gso=gso, num_taps=num_taps, skip=skip, norm=norm))


@pytest.mark.parametrize("encoding", ["B", "R"])
def test_every_depth_and_statistic(encoding: str) -> None:
    pools = [*POOLS, "mean+std", "sum+max+var"]
    for pool, scale, num_layers, mlp_layers in product(pools, (False, True), (0, 1), (1, 3)):
        options = {"pool": pool, "scale": scale, "num_layers": num_layers, "mlp_layers": mlp_layers}
        module = build(encoding, True, num_taps=2, gso="random_walk", **options)
        if "std" in pool:  # the oracle's root has no gradient where all samples agree, as on a single node
            data = batch_of((random_graph(5), 5), (molecule_like(7), 7))
            samples = None if encoding == "B" else torch.randn(12, 4, dtype=torch.float64)
            oracle.assert_matches(module, data.edge_index, data.batch, samples)
        else:
            check(module)


@pytest.mark.parametrize("encoding", ["B", "R"])
def test_layers_that_end_with_a_linear_map(encoding: str) -> None:
    for norm, skip, num_layers, mlp_layers in product(
        ("batch", "none"), ("none", "residual"), (1, 3), (1, 2)
    ):
        options = {"norm": norm, "skip": skip, "num_layers": num_layers, "mlp_layers": mlp_layers}
        module = build(encoding, True, end="linear", num_taps=2, **options)
        assert module.phi.readout is None
        check(module)


@pytest.mark.parametrize("act", ACTIVATIONS)
def test_every_activation(act: str) -> None:
    check(build("B", True, act=act, num_taps=2))


@pytest.mark.parametrize("pool", ["mean", "std", "mean+std+max"])
@pytest.mark.parametrize("norm", ["layer", "none"])
def test_chunks_in_training_equal_the_oracle(norm: str, pool: str) -> None:
    data = batch_of((random_graph(6), 6), (molecule_like(9), 9))
    samples = torch.randn(15, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    module = build("R", True, norm=norm, pool=pool, num_taps=2, chunk_size=2)
    oracle.assert_matches(module, data.edge_index, data.batch, samples)


@pytest.mark.parametrize("encoding", ["B", "R"])
def test_edge_weights(encoding: str) -> None:
    weight = torch.rand(EDGES.size(1), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    weight[0] = 0  # as if the edge were not there
    samples = None if encoding == "B" else torch.randn(len(BATCH), 3, dtype=torch.float64)
    for gso in OPERATORS:
        module = build(encoding, True, gso=gso, num_taps=3)
        oracle.assert_matches(module, EDGES, BATCH, samples, edge_weight=weight)


@pytest.mark.parametrize("kind", [BPEARL, RPEARL])
def test_weights_of_one_change_nothing(kind: type) -> None:
    torch.manual_seed(0)
    module = kind(4, num_taps=3).double().eval()
    ones = torch.ones(EDGES.size(1), dtype=torch.float64)
    torch.testing.assert_close(module(EDGES, BATCH, edge_weight=ones), module(EDGES, BATCH))


@pytest.mark.parametrize("norm", ["batch", "none"])
@pytest.mark.parametrize("pool", ["mean", "mean+std"])
def test_second_moments_of_taps(norm: str, pool: str) -> None:
    data = batch_of((random_graph(6), 6), (molecule_like(9), 9))
    samples = torch.randn(15, 5, dtype=torch.float64)
    for gso in ("sym_adjacency", "random_walk"):
        module = build("R", True, norm=norm, pool=pool, gso=gso, num_taps=4, tap_moments=True)
        oracle.assert_matches(module, data.edge_index, data.batch, samples)
