"""torch.compile: the encodings break the graph (sizes depend on the data) and otherwise work."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch
from helpers.graphs import batch_of, molecule_like

from graphgps_pearl.pearl import BPEARL, RPEARL


@pytest.mark.parametrize("kind", [BPEARL, RPEARL])
def test_a_compiled_encoding_trains_as_the_plain_one(kind: type) -> None:
    torch.manual_seed(0)
    plain = kind(4, hidden_dim=6, num_layers=1, num_taps=2).double()
    data = batch_of((molecule_like(9), 9), (molecule_like(14), 14))
    results = []
    for module in (plain, torch.compile(copy.deepcopy(plain), backend="aot_eager")):
        optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
        for step in range(2):
            torch.manual_seed(step)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Dynamo's remarks on caches and sparse tensors
                loss = module(data.edge_index, data.batch).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        results.append(loss.detach())
    torch.testing.assert_close(results[1], results[0], rtol=1e-10, atol=0)
