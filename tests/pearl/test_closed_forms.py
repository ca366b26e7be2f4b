"""Closed forms: second moments, triangles, 4-cycles, third moments."""

from __future__ import annotations

from itertools import product

import networkx as nx
import pytest
import torch
from helpers.graphs import dense_adjacency, from_networkx, random_graph
from torch import Tensor

from graphgps_pearl.pearl import BPEARL, RPEARL, Phi, TapLayer

SAMPLES = 20_000
GRAPHS = [nx.gnp_random_graph(n, p, seed=seed) for n, p, seed in ((8, 0.5, 0), (12, 0.35, 1), (15, 0.3, 2))]


def filters(weights: list[list[float]], act: str) -> Phi:
    """One layer whose f-th column is σ(Σ_k weights[f][k] A^k q)."""
    H = torch.tensor(weights, dtype=torch.float64)  # [F, K]
    layer = TapLayer(1, H.size(0), H.size(1), act=act)
    layer.weight = torch.nn.Parameter(H.T.unsqueeze(1).contiguous())
    return Phi([layer])


def basis(weights: list[list[float]], edges: Tensor, n: int, act: str = "square") -> Tensor:
    return BPEARL.from_phi(filters(weights, act), gso="adjacency")(edges, num_nodes=n).detach()


def sampled(
    weights: list[list[float]], edges: Tensor, n: int, act: str = "square", distribution: str = "gaussian"
) -> Tensor:
    module = RPEARL.from_phi(
        filters(weights, act), gso="adjacency", num_samples=SAMPLES, distribution=distribution
    )
    return module.eval()(edges, num_nodes=n).detach()


@pytest.mark.parametrize("distribution", ["gaussian", "rademacher", "two_point", "sobol"])
def test_quadratic_layer_is_the_squared_norm_of_a_filter_row(distribution: str) -> None:
    """E[(H(S) q)_v²] = Σ_u H_vu²: exact with the basis, in expectation with samples."""
    edges, n, h = random_graph(10), 10, [0.5, 1.0, -0.25]
    A = dense_adjacency(edges, n)
    H = h[0] * torch.eye(n, dtype=torch.float64) + h[1] * A + h[2] * A @ A
    expected = H.square().sum(1, keepdim=True)
    torch.testing.assert_close(basis([h], edges, n), expected, rtol=1e-12, atol=0)
    deviation = 2 * expected  # of one sample, Gaussian: sqrt(2); the others' fourth moments are below 3
    error = sampled([h], edges, n, distribution=distribution) - expected
    assert bool((error.abs() < 5 * deviation / SAMPLES**0.5).all())


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_triangles_by_polarisation(graph: nx.Graph) -> None:
    """½(σ(a + b) - σ(a) - σ(b)) = ab with σ(z) = z², so Σ_m (A²)_vm A_vm = (A³)_vv = 2 · triangles at v."""
    edges, n = from_networkx(graph), graph.number_of_nodes()
    weights, combine = [[0, 1, 1], [0, 1, 0], [0, 0, 1]], torch.tensor([0.5, -0.5, -0.5], dtype=torch.float64)
    expected = torch.tensor([2.0 * nx.triangles(graph)[v] for v in graph], dtype=torch.float64)
    torch.testing.assert_close(basis(weights, edges, n) @ combine, expected, rtol=0, atol=1e-9)

    A = dense_adjacency(edges, n)
    A2 = A @ A
    deviation = (A2.square().sum(1) * A.square().sum(1) + expected.square()).sqrt()  # of one Gaussian sample
    error = sampled(weights, edges, n) @ combine - expected
    assert bool((error.abs() <= 5 * deviation / SAMPLES**0.5).all())


@pytest.mark.parametrize("graph", GRAPHS, ids=str)
def test_four_cycles(graph: nx.Graph) -> None:
    """C4(v) = ½[(A⁴)_vv - d_v² - Σ_{u~v} d_u + d_v]: quadratic features, then a layer on the degrees."""
    edges, n = from_networkx(graph), graph.number_of_nodes()
    expected = torch.zeros(n, dtype=torch.float64)
    for cycle in nx.simple_cycles(graph, length_bound=4):
        if len(cycle) == 4:
            expected[cycle] += 1
    A = dense_adjacency(edges, n)

    def four_cycles(features: Tensor) -> Tensor:
        closed_walks, degree = features.T  # (A⁴)_vv and d_v
        return 0.5 * (closed_walks - degree.square() - A @ degree + degree)

    weights = [[0, 0, 1], [0, 1, 0]]
    torch.testing.assert_close(four_cycles(basis(weights, edges, n)), expected, rtol=0, atol=1e-9)

    walks, degree = torch.linalg.matrix_power(A, 4).diagonal(), A.sum(1)
    bound = 5 * (2 / SAMPLES) ** 0.5 * 0.5 * (walks + 2 * degree.square() + A @ degree + degree) + 1e-9
    assert bool(((four_cycles(sampled(weights, edges, n)) - expected).abs() <= bound).all())


def test_third_moments_with_the_two_point_law() -> None:
    """E[(H q)³] = (H∗H∗H) 1 for E q³ = 1: by enumeration, with the basis, and with samples."""
    edges, n, h = random_graph(7, seed=3), 7, [0.3, 1.0, -0.2]
    A = dense_adjacency(edges, n)
    H = h[0] * torch.eye(n, dtype=torch.float64) + h[1] * A + h[2] * A @ A
    expected = (H * H * H).sum(1)

    golden = (1 + 5**0.5) / 2
    likely = 1 / (1 + golden**2)
    exact = torch.zeros(n, dtype=torch.float64)
    for outcome in product((True, False), repeat=n):
        q = torch.tensor([golden if high else -1 / golden for high in outcome], dtype=torch.float64)
        probability = likely ** sum(outcome) * (1 - likely) ** (n - sum(outcome))
        exact += probability * (H @ q) ** 3
    torch.testing.assert_close(exact, expected, rtol=1e-10, atol=1e-12)

    torch.testing.assert_close(basis([h], edges, n, "cube").flatten(), expected, rtol=1e-12, atol=0)
    variance = H.square().sum(1)
    deviation = (15 * variance**3).sqrt() * 2
    error = sampled([h], edges, n, "cube", "two_point").flatten() - expected
    assert bool((error.abs() < 5 * deviation / SAMPLES**0.5).all())
    symmetric = sampled([h], edges, n, "cube", "rademacher").flatten()
    assert bool((symmetric.abs() < 5 * deviation / SAMPLES**0.5).all()), "the third moments of ±1 vanish"
