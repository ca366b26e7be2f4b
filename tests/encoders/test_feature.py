"""Encoders of nodes and edges together, with their norms."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import batch_of, encoder_config, graphs

from graphgps_pearl.encoders import EDGE_ENCODERS, FeatureEncoder, check_features
from graphgps_pearl.errors import ConfigError

NO_EDGES = ("dataset.edge_encoder", False, "gt.layer_type", "GIN+Transformer")


@pytest.mark.parametrize("name", EDGE_ENCODERS)
def test_edge_encoders(name: str) -> None:
    data, columns = graphs(), {"LinearEdge": 1, "VOCEdge": 2, "PPAEdge": 7}
    for graph in data:
        if name == "Bond":
            graph.edge_attr = graph.edge_attr[:, None].expand(-1, 3) % 2
        elif name == "ASTEdge":
            graph.edge_attr = graph.edge_attr[:, None].expand(-1, 2) % 2
        elif name in columns:
            graph.edge_attr = graph.edge_attr[:, None].float().repeat(1, columns[name])
    encoder = FeatureEncoder(encoder_config("TypeDictNode", "dataset.edge_encoder_name", name), 1)
    batch = encoder(batch_of(data))
    assert batch.edge_attr.shape == (batch.num_edges, 32) == (batch.num_edges, encoder.edge_dim)
    batch.edge_attr.square().sum().backward()
    assert all(p.grad is not None for p in encoder.edge_encoder.parameters())


@pytest.mark.parametrize(("attribute", "kind"), [("x", "Node"), ("edge_attr", "Edge")])
@pytest.mark.parametrize("columns", [(), (10,)])
def test_features_of_another_shape_than_ogbs_are_refused(attribute, kind, columns) -> None:
    graph = graphs()[0]
    graph.x = torch.zeros(graph.num_nodes, 9, dtype=torch.long)
    graph.edge_attr = torch.zeros(graph.num_edges, 3, dtype=torch.long)
    cfg = encoder_config("Atom", "dataset.edge_encoder_name", "Bond")
    check_features(cfg, graph)
    graph[attribute] = torch.zeros(len(graph[attribute]), *columns, dtype=torch.long)
    with pytest.raises(
        ConfigError, match=rf"dataset\.{kind.lower()}_encoder_name.*{attribute}.*use TypeDict{kind}"
    ):
        check_features(cfg, graph)


def test_pna_has_at_most_128_edge_columns() -> None:
    wide = ("gnn.dim_inner", 160, "gt.dim_hidden", 160)
    assert FeatureEncoder(encoder_config("TypeDictNode", *wide), 1).edge_dim == 160
    pna = encoder_config("TypeDictNode", *wide, "gt.layer_type", "PNA+Transformer")
    assert FeatureEncoder(pna, 1).edge_dim == 128


def test_norms_after_the_encoders() -> None:
    cfg = encoder_config("TypeDictNode", "dataset.node_encoder_bn", True, "dataset.edge_encoder_bn", True)
    batch = FeatureEncoder(cfg, 1)(batch_of(graphs()))
    torch.testing.assert_close(batch.x.mean(0), torch.zeros(32), atol=1e-5, rtol=0)
    torch.testing.assert_close(batch.edge_attr.mean(0), torch.zeros(32), atol=1e-5, rtol=0)


def test_without_encoders_the_batch_passes_as_it_is() -> None:
    cfg = encoder_config("TypeDictNode", "dataset.node_encoder", False, *NO_EDGES)
    encoder = FeatureEncoder(cfg, 1)
    assert (encoder.dim_in, encoder.edge_dim, list(encoder.parameters())) == (1, 0, [])
