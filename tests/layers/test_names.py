"""Names that do not exist are answered with those that do."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers import (
    ACTIVATIONS,
    activation,
    build_gps_layer,
    degree_histogram,
    reads_edges,
)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: build_gps_layer(8, "gine", "Transformer", edge_dim=8), "did you mean 'GINE'"),
        (lambda: build_gps_layer(8, "GINE", "Transfomer", edge_dim=8), "did you mean 'Transformer'"),
        (
            lambda: build_gps_layer(8, "Zebra", "None"),
            "gt.layer_type: there is no 'Zebra'; Known: CustomGatedGCN,",
        ),
        (lambda: build_gps_layer(8, "Gate", "None"), "did you mean 'GAT'"),
        (lambda: build_gps_layer(8, "Custom", "None"), "did you mean 'CustomGatedGCN'"),
        (lambda: build_gps_layer(8, "None", "None"), "None+None leaves nothing"),
        (lambda: build_gps_layer(8, "GINE", "None"), "dataset.edge_encoder: GINE reads edge features"),
        (
            lambda: build_gps_layer(8, "CustomGatedGCN", "None", edge_dim=4),
            "edges as wide as nodes: 4 is not 8",
        ),
        (lambda: build_gps_layer(8, "GAT", "None", heads=3), "3 heads do not divide"),
        (lambda: activation("rellu"), "gnn.act: there is no 'rellu'; did you mean 'relu'"),
        (lambda: degree_histogram([]), "gt.pna_degrees: [] does not count"),
        (lambda: degree_histogram([0, 0]), "gt.pna_degrees"),
        (lambda: degree_histogram([3, -1]), "gt.pna_degrees"),
    ],
)
def test_one_line_that_says_what_to_do(make: object, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()  # type: ignore[operator]
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_activation_works_and_leaves_its_input_alone() -> None:
    x = torch.randn(5)
    for name in ACTIVATIONS:
        before = x.clone()
        assert activation(name)(x).shape == x.shape
        assert torch.equal(x, before)
    assert isinstance(activation(nn.Tanh), nn.Tanh)


def test_who_reads_edges() -> None:
    assert [reads_edges(name) for name in ("None", "GCN", "GIN")] == [False] * 3
    assert [reads_edges(name) for name in ("GINE", "GAT", "GENConv", "PNA", "CustomGatedGCN")] == [True] * 5
