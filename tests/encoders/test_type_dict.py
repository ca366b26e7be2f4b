"""Tables of types."""

from __future__ import annotations

import pytest
from helpers.encoding_cases import NUM_TYPES, batch_of, encoder_config, graphs

from graphgps_pearl.encoders import (
    FeatureEncoder,
)
from graphgps_pearl.errors import DataError


def test_a_type_beyond_the_table_names_the_key() -> None:
    data = graphs()
    data[0].x[0] = NUM_TYPES
    encoder = FeatureEncoder(encoder_config("TypeDictNode"), 1)
    with pytest.raises(
        DataError, match=f"type {NUM_TYPES} met, but dataset.node_encoder_num_types is {NUM_TYPES}"
    ):
        encoder(batch_of(data))
