"""Stability: a perturbed operator changes the encoding linearly, whatever the eigengaps."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.graphs import dense_adjacency, molecule_like
from helpers.oracle import dense_gso
from torch import Tensor, nn

from graphgps_pearl.pearl import Phi, SparseMatrix, TapLayer
from graphgps_pearl.pearl.graphs import check_graphs
from graphgps_pearl.pearl.rows import Operators, SampleRows

WIDTH, TAPS, LAYERS = 3, 4, 3


class GivenOperator(Operators):
    """A graph whose operator S is any matrix."""

    def __init__(self, S: Tensor) -> None:
        super().__init__(
            check_graphs(torch.empty(2, 0, dtype=torch.long), num_nodes=len(S)), "adjacency", S.dtype
        )
        self.shift = SparseMatrix.from_dense(S)


def smooth_phi(relative: bool = False) -> Phi:
    """Generalised layers whose filters have |h| <= 1/F and Lipschitz constant 1 on [-1.1, 1.1].

    With ``relative`` it is λ h'(λ) that is bounded by 1 (integral Lipschitz).
    """
    generator = torch.Generator().manual_seed(0)
    grid = torch.linspace(-1.1, 1.1, 2001, dtype=torch.float64)
    k = torch.arange(TAPS)
    layers = []
    for width in [1] + [WIDTH] * (LAYERS - 1):
        layer = TapLayer(width, WIDTH, TAPS)
        H = torch.randn(TAPS, width, WIDTH, generator=generator, dtype=torch.float64)
        value = torch.einsum("gk,kif->gif", grid[:, None] ** k, H).abs().amax(0)
        slope = torch.einsum("gk,kif->gif", k * grid[:, None] ** (k - 1).clamp(min=0), H)
        slope = (slope * grid[:, None, None] if relative else slope).abs().amax(0)
        layer.weight = nn.Parameter(H / torch.maximum(value * WIDTH, slope))
        layers.append(layer)
    return Phi(layers)


def unit_signal(n: int) -> Tensor:
    q = torch.randn(n, 1, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return q / q.norm()


def symmetric(n: int, seed: int) -> Tensor:
    """A random symmetric matrix of spectral norm 1."""
    E = torch.randn(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    E = E + E.T
    return E / torch.linalg.matrix_norm(E, 2)


@torch.no_grad()
def change(phi: Phi, S: Tensor, perturbed: Tensor) -> float:
    """The largest change of an output feature, for one input of unit norm."""
    q = unit_signal(len(S))
    before, after = (phi(q, SampleRows(GivenOperator(M), 1)) for M in (S, perturbed))
    return float((after - before).norm(dim=0).max())


def ring(n: int) -> Tensor:
    """The normalised adjacency of a ring: its eigenvalues come in equal pairs."""
    S = torch.zeros(n, n, dtype=torch.float64)
    i = torch.arange(n)
    S[i, (i + 1) % n] = S[(i + 1) % n, i] = 0.5
    return S


@pytest.mark.parametrize("n", [10, 40])
@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_bound(n: int, relative: bool) -> None:
    """(1 + 8 sqrt N) L ε, and twice that for S + SE + ES with integral-Lipschitz filters."""
    S, phi = dense_gso("sym_adjacency", dense_adjacency(molecule_like(n), n)), smooth_phi(relative)
    for seed, epsilon in enumerate((1e-4, 1e-3, 1e-2)):
        E = epsilon * symmetric(n, seed)
        perturbed, factor = (S + S @ E + E @ S, 2) if relative else (S + E, 1)
        assert change(phi, S, perturbed) <= factor * (1 + 8 * math.sqrt(n)) * LAYERS * epsilon


def test_change_is_linear_in_the_perturbation() -> None:
    S, E, phi = ring(24), symmetric(24, 1), smooth_phi()
    ratios = [change(phi, S, S + epsilon * E) / epsilon for epsilon in (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)]
    assert min(ratios) > 0
    assert max(ratios) / min(ratios) < 1.2, ratios


def test_change_is_flat_where_laplacian_eigenvectors_jump() -> None:
    """An operator whose eigengap is of order ``gap``, perturbed by ε: eigenvectors turn by ε / gap."""
    n, epsilon, phi = 24, 1e-5, smooth_phi()
    ours, eigenvectors = [], []
    for gap in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 0.0):
        S = ring(n) + gap * symmetric(n, 5)
        perturbed = S + epsilon * symmetric(n, 6)
        ours.append(change(phi, S, perturbed) / epsilon)
        V, W = (
            torch.linalg.eigh(torch.eye(n, dtype=torch.float64) - M).eigenvectors[:, 1:5]
            for M in (S, perturbed)
        )
        eigenvectors.append(float(torch.minimum((V - W).norm(dim=0), (V + W).norm(dim=0)).max()))
    assert max(ours) / min(ours) < 2, ours
    assert eigenvectors[0] < 1e-3
    assert max(eigenvectors[-3:]) > 0.5, eigenvectors
