"""The norm for devices: batch norm of the rows written out, and its error in float32."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from graphgps_pearl.pearl.kernels.device_norm import weighted_norm
from graphgps_pearl.pearl.norm import BatchNorm


def results(norm: BatchNorm, x: Tensor, times: Tensor, written_out: bool) -> list[Tensor]:
    norm, x = copy.deepcopy(norm), x.clone().requires_grad_()
    if written_out:
        y = torch.nn.functional.batch_norm(
            *(x.repeat_interleave(times, dim=0), norm.running_mean, norm.running_var, norm.weight, norm.bias),
            training=True,
        )[times.cumsum(0) - 1]
    else:
        total = int(times.sum())
        y = weighted_norm(norm, x, times.to(x.dtype) / total, total)
    slope = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view_as(y)
    (y.square() * slope).sum().backward()
    return [y.detach(), x.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]


def test_equals_batch_norm_of_the_rows_written_out() -> None:
    torch.manual_seed(0)
    norm = BatchNorm(5).double()
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2)
        norm.bias.normal_()
    x = 3 + 2 * torch.randn(40, 5, dtype=torch.float64)
    times = torch.randint(1, 9, (40,))
    for ours, theirs in zip(*(results(norm, x, times, out) for out in (False, True)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_float32_is_accurate_to_1e_3_on_many_rows_of_unequal_weight() -> None:
    torch.manual_seed(0)
    x = 3 + torch.randn(100_000, 8, dtype=torch.float64)
    times = (1 / torch.rand(100_000)).clamp(max=1e4).long()
    exact = results(BatchNorm(8).double(), x, times, written_out=False)
    single = results(BatchNorm(8), x.float(), times, written_out=False)
    for ours, theirs in zip(single, exact, strict=True):
        assert (ours - theirs).norm() / theirs.norm() < 1e-3
