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
