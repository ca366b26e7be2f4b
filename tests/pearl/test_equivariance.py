"""Symmetry under renaming the nodes: exact for the basis, with the samples, and in distribution."""

from __future__ import annotations

import pytest
import torch
from helpers.graphs import awkward_batch, batch_of, molecule_like, random_graph
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.testing import assert_equivariant, permute_nodes, random_permutation

DATA = batch_of((random_graph(7), 7), (molecule_like(12), 12), (random_graph(4, seed=2), 4))


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("norm", ["batch", "layer", "graph"])
@pytest.mark.parametrize("pool", ["sum", "mean+std", "max"])
def test_basis_is_equivariant(pool: str, norm: str, training: bool) -> None:
    pe = (
        BPEARL(dim_pe=4, hidden_dim=6, num_layers=3, num_taps=3, pool=pool, norm=norm)
        .double()
        .train(training)
    )
    assert_equivariant(lambda data: pe(data.edge_index, data.batch, data.num_nodes), DATA)


def test_basis_is_equivariant_on_directed_graphs_with_loops_in_float32() -> None:
    edges, batch = awkward_batch()
    pe = BPEARL(dim_pe=4, hidden_dim=6, num_layers=3, num_taps=3, gso="random_walk").eval()
    data = Data(edge_index=edges, batch=batch, num_nodes=len(batch))
    assert_equivariant(lambda data: pe(data.edge_index, data.batch, data.num_nodes), data)


@pytest.mark.parametrize("pool", ["mean", "mean+std", "max"])
def test_random_samples_are_equivariant_when_they_are_permuted_along(pool: str) -> None:
    pe = RPEARL(dim_pe=4, hidden_dim=6, num_layers=3, num_taps=3, pool=pool).double().eval()
    data = DATA.clone()
    data.samples = torch.randn(data.num_nodes, 10, dtype=torch.float64)
    assert_equivariant(lambda data: pe(data.edge_index, data.batch, samples=data.samples), data)


def test_the_check_notices_a_module_that_is_not_equivariant() -> None:
    with pytest.raises(AssertionError, match="renaming the nodes"):
        assert_equivariant(lambda data: torch.arange(data.num_nodes).double().unsqueeze(1), DATA)


@torch.no_grad()
def order_dependence(num_samples: int, num_eval_draws: int = 1, distribution: str = "gaussian") -> float:
    """The encoding's deviation between orders of the nodes, relative to its deviation between nodes."""
    torch.manual_seed(0)
    pe = RPEARL(dim_pe=8, num_samples=100, hidden_dim=16, num_layers=4)
    for _ in range(30):
        pe(DATA.edge_index, DATA.batch)  # running statistics
    pe.double().eval()
    pe.num_samples, pe.num_eval_draws, pe.distribution = num_samples, num_eval_draws, distribution
    data = batch_of((molecule_like(23), 23))

    def encode(graph: Data) -> Tensor:
        return pe(graph.edge_index, num_nodes=23)

    permutations = [random_permutation(data, seed) for seed in range(6)]
    variances = []
    for pe.eval_seed in range(8):
        orders = torch.stack([encode(permute_nodes(data, p))[p] for p in permutations])
        variances.append(orders.var(0).mean())
    pe.num_samples, pe.num_eval_draws = 4000, 1
    spread = encode(data).std(0).square().mean().sqrt()
    return float(torch.stack(variances).mean().sqrt() / spread)


def test_order_dependence_of_evaluation_falls_as_the_inverse_root_of_samples() -> None:
    few, many = order_dependence(25), order_dependence(200)
    assert 2.3 < few / many < 3.5, (few, many)
    assert many < 0.6


def test_several_tables_average_it_out() -> None:
    one, nine = order_dependence(25), order_dependence(25, num_eval_draws=9)
    assert 2.4 < one / nine < 3.7, (one, nine)


def test_equivariant_in_distribution() -> None:
    """The mean over many tables is the same for both orders, within its error."""
    torch.manual_seed(0)
    pe = RPEARL(dim_pe=3, num_samples=100, hidden_dim=8, num_layers=2, norm="none").double().eval()
    data = batch_of((random_graph(8), 8))
    permutation = random_permutation(data, 1)
    renamed = permute_nodes(data, permutation)
    differences = []
    with torch.no_grad():
        for pe.eval_seed in range(100):
            differences.append(pe(renamed.edge_index)[permutation] - pe(data.edge_index))
    difference = torch.stack(differences)
    z = difference.mean(0) / (difference.std(0) / len(differences) ** 0.5)
    assert float(z.abs().max()) < 4.5
    assert float(difference.std()) > 0
