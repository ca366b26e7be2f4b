"""Gradients in float32 against float64: a smooth activation keeps them; ReLU's kink costs up to percents."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers.graphs import batch_of, molecule_like

from graphgps_pearl.pearl import BPEARL


@pytest.mark.parametrize(("act", "most"), [("silu", 2e-4), ("relu", 0.05)])
def test_gradient_of_a_random_linear_loss(act: str, most: float) -> None:
    data = batch_of(*((molecule_like(20 + i), 20 + i) for i in range(4)))
    torch.manual_seed(0)
    exact = BPEARL(12, 24, 6, num_taps=7, act=act, scale=False).double()
    weight = torch.randn(data.num_nodes, 12, dtype=torch.float64)
    gradients = []
    for module in (copy.deepcopy(exact).float(), exact):
        out = module(data.edge_index, data.batch)
        (out * weight.to(out.dtype)).sum().backward()
        gradients.append(torch.cat([p.grad.double().flatten() for p in module.parameters()]))
    assert float((gradients[0] - gradients[1]).norm() / gradients[1].norm()) < most
