"""Muon's steps in compiled code equal those in torch."""

from __future__ import annotations

import pytest
import torch

from graphgps_pearl.compiled import library
from graphgps_pearl.switches import use_kernels
from graphgps_pearl.training import compiled_muon
from graphgps_pearl.training.muon import orthogonalised

pytestmark = pytest.mark.skipif(library() is None, reason="no C++ compiler")


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 64, 8), (1, 75, 24), (2, 192, 64)])
def test_values(shape: tuple[int, ...], dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape, dtype=dtype)
    given = x.clone()
    with use_kernels(True):
        assert compiled_muon.serves(x)
        found = orthogonalised(x)
    assert torch.equal(x, given)
    with use_kernels(False):
        torch.testing.assert_close(found, orthogonalised(x), rtol=tolerance, atol=tolerance)


def test_who_is_served() -> None:
    with use_kernels(True):
        assert not compiled_muon.serves(torch.ones(1, 8, 6))
        assert not compiled_muon.serves(torch.ones(1, 8, 8, dtype=torch.bfloat16))
        assert not compiled_muon.serves(torch.ones(1, 8, 8, device="meta"))
