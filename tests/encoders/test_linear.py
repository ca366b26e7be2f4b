"""Linear maps of features."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import batch_of, encoder_config, graphs

from graphgps_pearl.encoders import FeatureEncoder, required_transforms
from graphgps_pearl.errors import DataError

GRAPHORMER = (
    *("posenc_GraphormerBias.node_degrees_only", True, "graphormer.use_graph_token", False),
    *("posenc_GraphormerBias.num_in_degrees", 9, "posenc_GraphormerBias.num_out_degrees", 9),
)


def test_features_of_another_width_are_refused() -> None:
    encoder = FeatureEncoder(encoder_config("LinearNode"), 4)
    with pytest.raises(DataError, match="node features have 1 columns, the encoder was built for 4"):
        encoder(batch_of(graphs()))
    words = ("dataset.edge_encoder_name", "LinearEdge", "dataset.edge_encoder_dim_in", 5)
    with pytest.raises(DataError, match=r"dataset\.edge_encoder_dim_in: 5, but edges have 1 column"):
        FeatureEncoder(encoder_config("TypeDictNode", *words), 1)(batch_of(graphs()))
    with pytest.raises(DataError, match="PPAEdge reads 7 columns, and edges have 1"):
        FeatureEncoder(encoder_config("TypeDictNode", *words[:1], "PPAEdge"), 1)(batch_of(graphs()))


@pytest.mark.parametrize(
    "name", ["TypeDictNode", "LinearNode", "ASTNode", "RWSE", "BPEARL", "GraphormerBias"]
)
def test_graphs_without_node_features_are_refused(name: str) -> None:
    cfg = encoder_config(name, *GRAPHORMER)
    batch = batch_of(graphs(required_transforms(cfg)))
    batch.x = None
    with pytest.raises(DataError, match=f"{name} reads x, and the graphs have none; give the nodes a column"):
        FeatureEncoder(cfg, 1)(batch)


@pytest.mark.parametrize("name", ["TypeDictEdge", "LinearEdge", "VOCEdge", "PPAEdge", "ASTEdge"])
def test_graphs_without_edge_features_are_refused(name: str) -> None:
    batch = batch_of(graphs())
    batch.edge_attr = None
    encoder = FeatureEncoder(encoder_config("TypeDictNode", "dataset.edge_encoder_name", name), 1)
    with pytest.raises(
        DataError, match=f"{name} reads edge_attr, and the graphs have none; use .* DummyEdge"
    ):
        encoder(batch)


def test_nodes_that_are_all_alike_need_no_features() -> None:
    batch = batch_of(graphs())
    batch.x = None
    x = FeatureEncoder(encoder_config("PPANode"), 1)(batch).x
    assert x.shape == (batch.num_nodes, 32) and torch.equal(x, x[:1].expand_as(x))


@pytest.mark.parametrize("name", ["RWSE", "GraphormerBias"])
def test_an_encoding_alone_reads_features_as_linear_node_does(name: str) -> None:
    """A vector is one column, and other columns than the encoder was built for are refused."""
    cfg = encoder_config(name, *GRAPHORMER)
    batch, flat = (batch_of(graphs(required_transforms(cfg))) for _ in range(2))
    encoder = FeatureEncoder(cfg, 1).eval()
    flat.x = flat.x.flatten()
    assert torch.equal(encoder(batch).x, encoder(flat).x)
    with pytest.raises(DataError, match="node features have 1 columns, the encoder was built for 4"):
        FeatureEncoder(cfg, 4)(batch_of(graphs(required_transforms(cfg))))
