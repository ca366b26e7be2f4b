"""Second moments of R-PEARL's taps: closed forms, and their error; statistics that are linear."""

from __future__ import annotations

import pytest
import torch
from helpers.graphs import batch_of, molecule_like, random_graph
from torch import Tensor

from graphgps_pearl.pearl import RPEARL, draw_samples, graph_shift_operator, make_key, taps
from graphgps_pearl.pearl.statistics import tap_moments

K = 5


def operator(edges: Tensor, n: int) -> Tensor:
    return graph_shift_operator("sym_adjacency", edges, n, torch.float64).to_dense()


def moments(S: Tensor, q: Tensor) -> Tensor:
    return tap_moments(torch.stack(taps(q, lambda x: S @ x, K), dim=2))


def diagonals(S: Tensor) -> Tensor:
    return torch.stack([torch.linalg.matrix_power(S, s).diag() for s in range(1, 2 * K - 1)], dim=1)


@pytest.mark.parametrize(("edges", "n"), [(molecule_like(17), 17), (random_graph(9), 9)])
def test_an_orthogonal_set_of_samples_gives_the_diagonals_exactly(edges: Tensor, n: int) -> None:
    S = operator(edges, n)
    orthogonal = torch.linalg.qr(torch.randn(n, n, dtype=torch.float64)).Q
    torch.testing.assert_close(moments(S, n**0.5 * orthogonal), diagonals(S), rtol=1e-10, atol=1e-12)


def test_the_diagonals_are_the_return_probabilities_of_a_walk() -> None:
    edges = molecule_like(17)
    walk = graph_shift_operator("random_walk", edges, 17, torch.float64).to_dense()
    torch.testing.assert_close(diagonals(operator(edges, 17)), diagonals(walk))


def test_error_of_one_product_of_gaussian_taps() -> None:
    """Var[(S^j q)_v (S^k q)_v] = (S^2j)_vv (S^2k)_vv + ((S^(j+k))_vv)^2 for standard normal q."""
    n, M, j, k = 17, 200_000, 1, 3
    S = operator(molecule_like(n), n)
    q = draw_samples("gaussian", make_key(3), torch.arange(n), 0, M, torch.float64)
    power = [torch.linalg.matrix_power(S, p) for p in range(2 * k + 1)]
    products = (power[j] @ q) * (power[k] @ q)
    expected = power[2 * j].diag() * power[2 * k].diag() + power[j + k].diag().square()
    torch.testing.assert_close(products.var(1), expected, rtol=0.05, atol=1e-3)


def test_error_falls_with_the_samples_and_rademacher_has_less() -> None:
    n = 23
    S = operator(molecule_like(n), n)

    def error(distribution: str, M: int) -> float:
        draws = [draw_samples(distribution, make_key(i), torch.arange(n), 0, M, S.dtype) for i in range(60)]
        return float(torch.stack([(moments(S, q) - diagonals(S)).square() for q in draws]).mean().sqrt())

    assert error("gaussian", 80) == pytest.approx(error("gaussian", 20) / 2, rel=0.15)
    assert error("rademacher", 20) < 0.9 * error("gaussian", 20)


@pytest.mark.parametrize("training", [True, False])
def test_chunks_give_the_same_moments(training: bool) -> None:
    edges = molecule_like(19)
    module = RPEARL(4, num_samples=10, num_taps=4, norm="none", tap_moments=True).double().train(training)
    torch.manual_seed(0)
    whole = module(edges)
    module.chunk_size = 3
    torch.manual_seed(0)
    torch.testing.assert_close(module(edges), whole, rtol=1e-10, atol=1e-12)


def test_moments_under_autocast() -> None:
    module = RPEARL(4, num_samples=10, num_taps=4, tap_moments=True).eval()
    expected = module(molecule_like(19))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = module(molecule_like(19))
        module.train()(molecule_like(19)).sum().backward()
    torch.testing.assert_close(found, expected, rtol=0.1, atol=0.05)


def test_one_tap_has_no_moments() -> None:
    with pytest.raises(ValueError, match="tap_moments needs num_taps of at least 2, got 1"):
        RPEARL(4, tap_moments=True)


@pytest.mark.parametrize("pool", ["mean", "mean+sum"])
def test_a_readout_of_linear_statistics_comes_after_them(pool: str) -> None:
    """The readout multiplies one row a node, with the result and the gradients of one row a sample."""
    data = batch_of((molecule_like(9), 9), (molecule_like(5), 5))
    pe = RPEARL(4, hidden_dim=6, num_layers=2, num_taps=2, pool=pool).double()
    results = []
    for late in (True, False):
        torch.manual_seed(0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RPEARL, "_pools_first", late)
            out = pe(data)
        results.append([out, *torch.autograd.grad(out.square().sum(), list(pe.parameters()))])
    assert pe._pools_first and not RPEARL(4, pool="mean+std")._pools_first
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
