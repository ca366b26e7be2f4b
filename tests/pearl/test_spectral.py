"""What the generalised layer does to the spectrum: Proposition 1, SPE, universality."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from helpers.graphs import circular_skip_link, dense_adjacency, from_networkx, molecule_like, random_graph
from helpers.oracle import dense_gso
from torch import Tensor

from graphgps_pearl.pearl import ACTIVATIONS, BPEARL, TapLayer
from graphgps_pearl.pearl.graphs import check_graphs
from graphgps_pearl.pearl.phi import Phi
from graphgps_pearl.pearl.rows import Operators, PairRows, SampleRows
from graphgps_pearl.vocabulary import OPERATORS


@pytest.mark.parametrize("gso", ["adjacency", "sym_laplacian", "random_walk"])
def test_proposition_1(gso: str) -> None:
    """σ(Σ S^k X H_k) = σ(V W), W[n, f] = Σ_i Σ_k λ_n^k H_k[i, f] <α_n, X[:, i]>."""
    edges, n = molecule_like(12), 12
    layer = TapLayer(3, 4, num_taps=5).double()
    X = torch.randn(n, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = SampleRows(Operators(check_graphs(edges), gso, torch.float64), num_samples=1)

    S = dense_gso(gso, dense_adjacency(edges, n))
    symmetric = torch.equal(S, S.T)
    assert symmetric == (gso != "random_walk")
    if symmetric:
        eigenvalues, V = torch.linalg.eigh(S)
        alpha = V.T
    else:
        eigenvalues, V = torch.linalg.eig(S)
        alpha = torch.linalg.inv(V)  # row n is α_n
    powers = eigenvalues[:, None] ** torch.arange(5)
    H = layer.weight.to(V.dtype)
    W = torch.einsum("nk,kif,ni->nf", powers, H, alpha @ X.to(V.dtype))
    expected = torch.relu((V @ W).real)
    torch.testing.assert_close(layer(X, rows), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("gso", ["sym_laplacian", "laplacian", "adjacency"])
@pytest.mark.parametrize(
    "edges", [random_graph(9, seed=1), circular_skip_link(3, n=11)], ids=["random", "csl"]
)
def test_equals_spe_with_polynomial_filters(edges: Tensor, gso: str) -> None:
    """SPE's V diag(α_f(Λ)) V^T e_m, from a full eigendecomposition, through the same network."""
    sizes = {"dim_pe": 5, "hidden_dim": 6, "num_layers": 3, "num_taps": 4}
    module = BPEARL(**sizes, gso=gso, act="gelu", scale=False).double()
    n = int(edges.max()) + 1
    expected = module.eval()(edges)

    eigenvalues, V = torch.linalg.eigh(dense_gso(gso, dense_adjacency(edges, n)))
    first = module.phi.layers[0]
    alpha = torch.einsum("nk,kf->nf", eigenvalues[:, None] ** torch.arange(4), first.weight[:, 0])
    filtered = torch.einsum("vn,nf,mn->vmf", V, alpha, V)  # [v, m, f]
    rows = PairRows(Operators(check_graphs(edges), gso, torch.float64))
    x = ACTIVATIONS[first.act](first.norm(filtered.reshape(n * n, -1)))
    for layer in module.phi.layers[1:]:
        x = x + layer(x, rows)
    spe = module.phi.readout(x).view(n, n, 5).sum(1)
    torch.testing.assert_close(spe, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("gso", [g for g in OPERATORS if g != "random_walk"])
@pytest.mark.parametrize("graph", [nx.petersen_graph(), nx.cycle_graph(8), nx.path_graph(6)], ids=str)
def test_vandermonde_filters_give_the_eigenspaces(graph: nx.Graph, gso: str) -> None:
    """With K distinct eigenvalues one linear layer gives V_μ V_μ^T, whose trace is the multiplicity."""
    edges, n = from_networkx(graph), graph.number_of_nodes()
    eigenvalues, V = torch.linalg.eigh(dense_gso(gso, dense_adjacency(edges, n)))
    distinct = eigenvalues[torch.cat([torch.tensor([True]), eigenvalues.diff() > 1e-8])]
    K = len(distinct)
    layer = TapLayer(1, K, num_taps=K, act="identity").double()
    layer.weight.data = torch.linalg.inv(torch.vander(distinct, increasing=True)).view(K, 1, K)

    rows = PairRows(Operators(check_graphs(edges), gso, torch.float64))
    projections = layer(rows.signal, rows).view(n, n, K)
    for j, mu in enumerate(distinct):
        space = V[:, (eigenvalues - mu).abs() < 1e-8]
        torch.testing.assert_close(projections[:, :, j], space @ space.T, rtol=0, atol=1e-8)
        trace = projections[:, :, j].diagonal().sum().item()
        assert abs(trace - space.size(1)) < 1e-8


def test_random_walk_taps_are_rrwp_and_their_diagonal_rwse() -> None:
    edges, n, K = molecule_like(13), 13, 5
    layer = TapLayer(1, K, num_taps=K, act="identity").double()
    layer.weight.data = torch.eye(K, dtype=torch.float64).view(K, 1, K)
    rows = PairRows(Operators(check_graphs(edges), "random_walk", torch.float64))
    pairs = Phi([layer])(rows.signal, rows)

    walk = dense_gso("random_walk", dense_adjacency(edges, n))
    powers = torch.stack([torch.linalg.matrix_power(walk, k) for k in range(K)], dim=-1)
    torch.testing.assert_close(pairs.view(n, n, K), powers, rtol=0, atol=1e-12)
    rwse = torch.stack([torch.linalg.matrix_power(walk, k).diagonal() for k in range(K)], dim=-1)
    torch.testing.assert_close(pairs[rows.diagonal], rwse, rtol=0, atol=1e-12)
