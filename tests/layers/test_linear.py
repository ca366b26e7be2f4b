"""Our linear map is torch's, whoever computes it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from graphgps_pearl.layers.kernels import compiled_layer
from graphgps_pearl.layers.linear import Linear, linear
from graphgps_pearl.switches import use_kernels


def test_state_and_initial_weights_are_torchs() -> None:
    torch.manual_seed(0)
    ours = Linear(16, 8).state_dict()
    torch.manual_seed(0)
    theirs = torch.nn.Linear(16, 8).state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize("enabled", [True, False])
def test_values(enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_layer, "torch_products_are_slow", lambda: True)
    module = Linear(16, 8).double()
    x = torch.randn(70, 16).double()
    with use_kernels(enabled):
        torch.testing.assert_close(module(x), F.linear(x, module.weight, module.bias), rtol=1e-12, atol=1e-12)


def test_other_shapes_are_torchs() -> None:
    module = Linear(8, 16)
    x = torch.randn(2, 3, 8)
    assert torch.equal(module(x), F.linear(x, module.weight, module.bias))
    assert linear(x[0], module.weight).shape == (3, 16)
