"""Attention in compiled code equals attention in torch, with the same entries dropped."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from graphgps_pearl.compiled import library
from graphgps_pearl.layers.grouping import Grouping, group_graphs
from graphgps_pearl.layers.kernels import attention, compiled
from graphgps_pearl.switches import use_kernels

pytestmark = pytest.mark.skipif(library() is None, reason="no C++ compiler")

SIZES = torch.tensor((5, 1, 19, 3, 0, 18, 40))
DTYPES = [(torch.float64, 1e-10), (torch.float32, 2e-5)]


def run(qkv: Tensor, heads: int, found: Grouping, bias: list, native: bool) -> list[Tensor]:
    """Output and gradients; the same seed drops the same entries."""
    torch.manual_seed(7)
    with use_kernels(True, native):
        assert compiled.serves(qkv, heads, found, bias) == native
        out = attention.attend(qkv, heads, found, bias, 0.3)
    wanted = [qkv, *(b for b in bias if b is not None and b.requires_grad)]
    return [out, *torch.autograd.grad((out * out.detach().cos()).sum(), wanted)]


@pytest.mark.parametrize("kind", ["padding", "bias of heads", "one bias", "strided bias"])
@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("width", [8, 16, 24])
@pytest.mark.parametrize("cost", [0, 200, 10**9])
def test_values_and_gradients(kind: str, dtype: torch.dtype, tolerance: float, width: int, cost: int) -> None:
    torch.manual_seed(1)
    found, heads = group_graphs(SIZES, cost), 2
    qkv = torch.randn(int(SIZES.sum()), 3 * heads * width, dtype=dtype, requires_grad=True)
    bias = [group.padding(dtype) for group in found.groups]
    if kind != "padding":
        for number, group in enumerate(found.groups):
            shape = (len(group.graphs), 1 if kind == "one bias" else heads, group.size, group.size)
            own = torch.randn(shape, dtype=dtype)
            if kind == "strided bias":
                own = own.transpose(0, 1).contiguous().transpose(0, 1)
            mask = bias[number]
            bias[number] = (own if mask is None else own + mask).requires_grad_()
    for a, b in zip(*(run(qkv, heads, found, bias, native) for native in (False, True)), strict=True):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


def test_large_logits_and_nan() -> None:
    found = group_graphs(torch.tensor((3, 4)), 10**9)
    bias = [group.padding(torch.float32) for group in found.groups]
    qkv = 60 * torch.randn(7, 3 * 16, requires_grad=True).detach()
    qkv.requires_grad_()
    for a, b in zip(*(run(qkv, 2, found, bias, native) for native in (False, True)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        qkv[1, 3] = torch.nan
    out = run(qkv, 2, found, bias, True)[0]
    assert out[:3].isnan().any() and out[3:].isfinite().all()


def test_what_does_not_fit_is_left_to_torch() -> None:
    one = group_graphs(torch.tensor([4]), 0)

    def serves(qkv: Tensor, bias: Tensor | None = None) -> bool:
        return compiled.serves(qkv, 2, one, [bias])

    qkv = torch.randn(4, 3 * 16)
    with use_kernels(True):
        assert serves(qkv) and serves(qkv, torch.randn(1, 2, 1, 4))
        assert not serves(torch.randn(4, 3 * 12))  # 6 columns a head
        assert not serves(qkv, torch.randn(1, 2, 4, 4).double())
        assert not serves(qkv, torch.randn(1, 2, 4, 1))  # one number for all keys
        assert not serves(qkv.bfloat16())
    with use_kernels(False):
        assert not serves(qkv)


def test_no_second_derivatives() -> None:
    found = group_graphs(torch.tensor((3, 4)), 0)
    qkv = torch.randn(7, 3 * 16, dtype=torch.float64, requires_grad=True)
    with use_kernels(True):
        out = attention.attend(qkv, 2, found, [None, None], 0.5)
    with pytest.raises(RuntimeError, match="second derivatives"):
        torch.autograd.grad(out.sum(), qkv, create_graph=True)
