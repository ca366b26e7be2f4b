"""How fast R-PEARL's mean converges: as M^-1/2, with a constant that does not grow with the graph."""

from __future__ import annotations

import math

import pytest
import torch
from helpers.graphs import dense_adjacency, molecule_like, random_graph
from helpers.oracle import dense_gso
from torch import Tensor

from graphgps_pearl.pearl import RPEARL, Phi, TapLayer

TAPS = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)  # ||H(S)|| <= 1 for the normalised adjacency


def encoder(num_samples: int, distribution: str = "gaussian") -> RPEARL:
    layer = TapLayer(1, 1, 4, act="relu")
    layer.weight = torch.nn.Parameter(TAPS.view(4, 1, 1))
    return RPEARL.from_phi(
        Phi([layer]), gso="sym_adjacency", num_samples=num_samples, distribution=distribution
    ).eval()


def exact_mean(edges: Tensor, n: int) -> Tensor:
    """(H q)_v is Gaussian with variance Σ_u H_vu², and E relu of that is its deviation over sqrt(2π)."""
    S = dense_gso("sym_adjacency", dense_adjacency(edges, n))
    H = sum(h * torch.linalg.matrix_power(S, k) for k, h in enumerate(TAPS))
    return H.square().sum(1).sqrt() / math.sqrt(2 * math.pi)


@torch.no_grad()
def errors(edges: Tensor, n: int, num_samples: int, repeats: int, distribution: str = "gaussian") -> Tensor:
    """Errors of the mean at every node for several tables, [repeats, N]."""
    module, expected, found = encoder(num_samples, distribution), exact_mean(edges, n), []
    for module.eval_seed in range(repeats):
        found.append(module(edges, num_nodes=n).flatten() - expected)
    return torch.stack(found)


def rms(error: Tensor) -> float:
    return float(error.square().mean().sqrt())


def test_error_falls_as_the_inverse_root_of_samples() -> None:
    edges, sizes = random_graph(30, 0.2), [16, 64, 256, 1024, 4096]
    log_error = torch.tensor([math.log(rms(errors(edges, 30, M, repeats=30))) for M in sizes])
    log_size = torch.tensor(sizes).log()
    centred = log_size - log_size.mean()
    slope = float((centred * log_error).sum() / centred.square().sum())
    assert -0.53 < slope < -0.47, slope


@pytest.mark.parametrize(
    "family", [molecule_like, lambda n: random_graph(n, 6 / n)], ids=["sparse", "random"]
)
def test_the_constant_does_not_grow_with_the_graph(family) -> None:  # type: ignore[no-untyped-def]
    constants = [rms(errors(family(n), n, 64, repeats=2000 // n)) * 64**0.5 for n in (20, 80, 320, 1280)]
    assert max(constants) < 0.6  # below the deviation 0.58 of relu of a unit Gaussian, at every size
    assert max(constants) / min(constants) < 1.25, constants


def test_the_papers_number_of_samples_is_enough() -> None:
    """M = 1 / (δ ε²) samples leave an error above ε with probability at most δ (Chebyshev: far less)."""
    epsilon, delta = 0.1, 0.2
    error = errors(random_graph(40, 0.15), 40, math.ceil(1 / (delta * epsilon**2)), repeats=20)
    assert float((error.abs() > epsilon).double().mean()) <= delta


@pytest.mark.parametrize("n", [23, 150])
def test_sobol_samples_beat_independent_ones(n: int) -> None:
    edges = molecule_like(n)
    independent, sobol = (
        rms(errors(edges, n, 50, repeats=40, distribution=distribution)) ** 2
        for distribution in ("gaussian", "sobol")
    )
    assert sobol < 0.5 * independent, sobol / independent
