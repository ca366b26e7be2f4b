"""Linear maps of features."""

from __future__ import annotations

import pytest
from helpers.encoding_cases import batch_of, encoder_config, graphs

from graphgps_pearl.encoders import (
    FeatureEncoder,
)
from graphgps_pearl.errors import DataError


def test_features_of_another_width_are_refused() -> None:
    encoder = FeatureEncoder(encoder_config("LinearNode"), 4)
    with pytest.raises(DataError, match="node features have 1 columns, the encoder was built for 4"):
        encoder(batch_of(graphs()))
    words = ("dataset.edge_encoder_name", "LinearEdge", "dataset.edge_encoder_dim_in", 5)
    with pytest.raises(DataError, match=r"dataset\.edge_encoder_dim_in: 5, but edges have 1 column"):
        FeatureEncoder(encoder_config("TypeDictNode", *words), 1)(batch_of(graphs()))
    with pytest.raises(DataError, match="PPAEdge reads 7 columns, and edges have 1"):
        FeatureEncoder(encoder_config("TypeDictNode", *words[:1], "PPAEdge"), 1)(batch_of(graphs()))
