"""Random identifiers in parts of one large graph."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import encoder_config, graph, molecule
from torch_geometric.data import Batch

from graphgps_pearl.data.subgraphs import Neighbourhoods
from graphgps_pearl.encoders import FeatureEncoder


@pytest.mark.parametrize("training", [True, False])
def test_a_node_is_the_same_in_every_neighbourhood(training: bool) -> None:
    whole = graph(molecule(20), 20)
    whole.y = torch.zeros(20)
    parts = Batch.from_data_list(Neighbourhoods(whole, torch.arange(20), hops=2))
    encoder = FeatureEncoder(encoder_config("RandomID", "posenc_RandomID.dim_pe", 32), 1).train(training)
    found = encoder(parts.clone()).x
    roots = found[parts.ptr[:-1]]
    assert len(roots.unique(dim=0)) == 20
    torch.testing.assert_close(found, roots[parts.n_id])
    if not training:
        torch.testing.assert_close(roots, encoder(whole).x)
