"""Tables of types."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import NUM_TYPES, batch_of, encoder_config, graphs
from torch_geometric.data import Batch

from graphgps_pearl.encoders import (
    FeatureEncoder,
)
from graphgps_pearl.encoders.type_dict import ASTNodeEncoder
from graphgps_pearl.errors import DataError


def test_a_type_beyond_the_table_names_the_key() -> None:
    data = graphs()
    data[0].x[0] = NUM_TYPES
    encoder = FeatureEncoder(encoder_config("TypeDictNode"), 1)
    with pytest.raises(
        DataError, match=f"type {NUM_TYPES} met, but dataset.node_encoder_num_types is {NUM_TYPES}"
    ):
        encoder(batch_of(data))


@pytest.mark.parametrize(("value", "said"), [(-1.0, "type -1 met"), (0.5, r"type 0\.5 met.*LinearNode")])
def test_types_are_whole_numbers_from_zero_up(value: float, said: str) -> None:
    data = graphs()
    data[0].x = data[0].x.float()
    data[0].x[1] = value
    with pytest.raises(DataError, match=said):
        FeatureEncoder(encoder_config("TypeDictNode"), 1)(batch_of(data[:1]))


def test_whole_numbers_may_be_floats() -> None:
    data, encoder = graphs()[:1], FeatureEncoder(encoder_config("TypeDictNode"), 1)
    expected = encoder(batch_of(data)).x
    data[0].x = data[0].x.float()
    assert torch.equal(encoder(batch_of(data)).x, expected)


def test_syntax_trees_have_a_vector_for_each_column() -> None:
    torch.manual_seed(0)
    encoder = ASTNodeEncoder(4)
    x = torch.stack([torch.randint(size, (6,)) for size in (98, 10_030, 21)], dim=1)
    found = encoder(Batch(x=x)).x
    expected = sum(table.weight[x[:, i]] for i, table in enumerate(encoder.encoders))
    torch.testing.assert_close(found, expected)
    with pytest.raises(DataError, match=r"ASTNode reads 3 columns .* has \[6, 2\]"):
        encoder(Batch(x=x[:, :2]))
