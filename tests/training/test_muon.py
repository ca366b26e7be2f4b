"""Muon: what it does to a matrix, and that it is AdamW for everything else."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from graphgps_pearl.training.muon import Muon, matrices_of, orthogonalised

SETTINGS = {"lr": 0.01, "weight_decay": 0.1, "momentum": 0.95}


def network() -> nn.Module:
    torch.manual_seed(0)
    layers = (nn.Embedding(7, 24), nn.Linear(24, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 40))
    return nn.Sequential(*layers)


def optimizer(module: nn.Module) -> Muon:
    matrices = matrices_of(module)
    others = [p for p in module.parameters() if all(p is not m for m in matrices)]
    return Muon(matrices, others, **SETTINGS)


def train(module: nn.Module, optimiser: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        generator = torch.Generator().manual_seed(step)
        optimiser.zero_grad()
        module(torch.randint(7, (32,), generator=generator)).square().mean().backward()
        optimiser.step()


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 64, 8), (1, 75, 32), (2, 30, 6)])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_singular_values_come_near_one_and_vectors_stay(shape: tuple[int, ...], size: float) -> None:
    torch.manual_seed(0)
    u, s, vh = torch.linalg.svd(torch.randn(shape, dtype=torch.float64), full_matrices=False)
    found = orthogonalised(u @ torch.diag_embed(s.clamp(min=0.1)) @ vh * size)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.6 and values.max() < 1.3
    core = u.mT @ found @ vh.mT  # diagonal where the singular vectors are the same
    assert (core - torch.diag_embed(core.diagonal(dim1=1, dim2=2))).abs().max() < 1e-6


def test_a_matrix_without_gradient_stays_as_it_is() -> None:
    assert orthogonalised(torch.zeros(1, 8, 4)).eq(0).all()
    assert orthogonalised(torch.zeros(1, 8, 8)).eq(0).all()
    weight = nn.Parameter(torch.ones(4, 8))
    Muon([weight], [], **SETTINGS).step()
    assert weight.eq(1).all()


def test_a_momentum_that_has_died_out_moves_nothing() -> None:
    """A gate that closes ends the gradients behind it, and the momentum halves every 14 steps. Its squares
    underflow in float32 long before it does: divided by a norm that is too small, it would grow beyond all
    bounds."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(192, 64))
    muon = Muon([weight], [], lr=1e-3, weight_decay=0.0, momentum=0.95)
    weight.grad = torch.randn(192, 64)
    muon.step()
    weight.grad.zero_()
    for _ in range(2000):
        muon.step()
    assert weight.isfinite().all() and weight.abs().max() < 10
    before = weight.detach().clone()
    muon.step()
    assert torch.equal(before, weight)
    torch.testing.assert_close(
        orthogonalised(torch.full((1, 8, 8), 1e-15)).abs().max().item(), 0.0, atol=1e-4, rtol=0
    )


def test_tables_and_vectors_are_no_matrices() -> None:
    module = network()
    assert [tuple(p.shape) for p in matrices_of(module)] == [(16, 24), (40, 16)]
    assert matrices_of(nn.Linear(8, 1)) == []


def test_steps_of_matrices_are_those_of_torch() -> None:
    """torch.optim.Muon computes in bfloat16 and takes matrices one by one."""
    torch.manual_seed(1)
    ours = [nn.Parameter(torch.randn(shape)) for shape in ((16, 24), (40, 16), (16, 24))]
    theirs = copy.deepcopy(ours)
    optimisers = (
        Muon(ours, [], **SETTINGS),
        torch.optim.Muon(theirs, lr=0.01, weight_decay=0.1, momentum=0.95, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(5):
        for a, b in zip(ours, theirs, strict=True):
            a.grad = torch.randn_like(a)
            b.grad = a.grad.clone()
        for optimiser in optimisers:
            optimiser.step()
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=5e-3)  # five steps of about 0.01


def test_all_else_is_adamw() -> None:
    ours, theirs = network(), network()
    for module in (ours, theirs):
        for p in matrices_of(module):
            p.requires_grad_(False)
    left = [p for p in ours.parameters() if p.requires_grad]
    same = [p for p in theirs.parameters() if p.requires_grad]
    train(ours, Muon([], left, **SETTINGS), range(4))
    train(theirs, torch.optim.AdamW(same, lr=0.01, weight_decay=0.1, fused=True), range(4))
    for a, b in zip(left, same, strict=True):
        assert torch.equal(a, b)


def test_a_transposed_matrix_takes_the_transposed_step() -> None:
    grad = torch.randn(8, 20)

    def step(grad: Tensor) -> Tensor:
        weight = nn.Parameter(torch.zeros_like(grad))
        weight.grad = grad
        Muon([weight], [], **SETTINGS).step()
        return weight.detach()

    torch.testing.assert_close(step(grad), step(grad.T.contiguous()).T, rtol=1e-5, atol=1e-6)
    assert step(grad).square().mean().sqrt() == pytest.approx(0.2 * 0.01, rel=0.3)  # the size of AdamW's


def test_continues_from_its_state() -> None:
    whole, first = network(), network()
    train(whole, optimizer(whole), range(6))
    before = optimizer(first)
    train(first, before, range(3))
    after = optimizer(first)
    after.load_state_dict(copy.deepcopy(before.state_dict()))
    train(first, after, range(3, 6))
    for a, b in zip(whole.parameters(), first.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_loaded_state_is_on_the_parameters_device():
    """torch leaves the count of steps on the CPU unless it is told that a fused kernel reads it."""
    bias = torch.nn.Parameter(torch.zeros(3))
    bias.grad = torch.ones(3)
    saved = Muon([], [bias], lr=1e-3, weight_decay=0.0, momentum=0.95)
    saved.step()
    elsewhere = torch.nn.Parameter(torch.zeros(3, device="meta"))
    loaded = Muon([], [elsewhere], lr=1e-3, weight_decay=0.0, momentum=0.95)
    loaded.load_state_dict(saved.state_dict())
    assert {value.device.type for value in loaded.state[elsewhere].values()} == {"meta"}
