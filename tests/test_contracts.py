"""What encodings give to networks: how several outputs combine on a batch."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Batch, Data

from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.errors import ConfigError


def _batch() -> Batch:
    return Batch.from_data_list([Data(x=torch.zeros(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]))])


def test_outputs_of_several_encodings_combine() -> None:
    batch = _batch()
    EncoderOutput(nodes=torch.ones(3, 1), per_layer=torch.ones(3, 2), edges=torch.ones(2, 4)).attach(batch)
    EncoderOutput(per_layer=torch.zeros(3, 1), edges=torch.ones(2, 4)).attach(batch)
    EncoderOutput(attention_bias=[torch.zeros(1, 1, 3, 3)]).attach(batch)
    found = EncoderOutput.of(batch)
    assert batch.x.tolist() == [[0, 0, 1]] * 3
    assert found.per_layer.tolist() == [[1, 1, 0]] * 3
    assert found.edges.eq(2).all()
    assert found.bias_of_layer(0) is found.bias_of_layer(7)
    with pytest.raises(ConfigError, match="two encodings give an attention bias"):
        EncoderOutput(attention_bias=[torch.zeros(1, 1, 3, 3)]).attach(batch)


def test_columns_alone_leave_no_trace_on_the_batch() -> None:
    """A network of another package sees ``batch.x`` and nothing that it does not know."""
    batch = _batch()
    names = set(batch.keys())
    EncoderOutput(nodes=torch.ones(3, 1)).attach(batch)
    assert set(batch.keys()) == names
    assert EncoderOutput.of(batch) == EncoderOutput()
    assert EncoderOutput.of(batch).bias_of_layer(0) is None


def test_one_bias_for_each_layer() -> None:
    biases = [torch.full((1, 1, 3, 3), float(layer)) for layer in range(2)]
    output = EncoderOutput(attention_bias=biases)
    assert output.bias_of_layer(1) is biases[1]
