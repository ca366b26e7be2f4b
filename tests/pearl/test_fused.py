"""Batch norm and ReLU together: one after the other, in every precision and with multiplicities."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from graphgps_pearl.pearl.norm import BatchNorm


def normalised(dtype: torch.dtype, weighted: bool, relu: bool, together: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    norm = BatchNorm(5).to(torch.promote_types(dtype, torch.float32))
    norm.weight.data, norm.bias.data = norm.weight * 0.7, norm.bias + torch.linspace(-1, 1, 5).to(norm.bias)
    x = (torch.randn(5000, 5) * 3 + 7).to(dtype).requires_grad_()
    rows = SimpleNamespace(weight=torch.randint(1, 50, (5000,)) if weighted else None)
    y = norm(x, rows, relu=relu and together)
    y = torch.relu(y) if relu and not together else y
    y.sin().sum().backward()
    return [y, x.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_together_is_one_after_the_other(dtype: torch.dtype, weighted: bool) -> None:
    for a, b in zip(
        *(normalised(dtype, weighted, True, together) for together in (True, False)), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("weighted", [False, True])
def test_single_precision_is_close_to_double(weighted: bool) -> None:
    single, double = (normalised(dtype, weighted, True, True) for dtype in (torch.float32, torch.float64))
    for a, b in zip(single, double, strict=True):
        assert float((a.double() - b).detach().norm() / b.detach().norm()) < 1e-4


def test_mean_far_from_zero_costs_no_digits() -> None:
    """Sums are about a reference near the mean: the variance of x + 10^4 is that of x, as far as x has it."""
    torch.manual_seed(0)
    x = torch.randn(20_000, 3)
    norms = [BatchNorm(3), BatchNorm(3)]
    for norm, shifted in zip(norms, (x + 1e4, (x + 1e4).double() - 1e4), strict=True):
        norm(shifted.float())
    torch.testing.assert_close(norms[0].running_var, norms[1].running_var, rtol=1e-5, atol=0)


def test_half_precision_keeps_its_dtype() -> None:
    y, grad, *_ = normalised(torch.bfloat16, True, True, True)
    assert y.dtype == grad.dtype == torch.bfloat16
