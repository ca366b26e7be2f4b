"""Graphormer's bias against its formula, pair by pair, and its layer against torch's attention."""

import pytest
import torch
from torch import Tensor
from torch_geometric.utils import to_dense_batch

from graphgps_pearl.layers import GraphormerLayer, Layout, PathBias

SIZES = torch.tensor([3, 1, 4])


def pairs(num_distances: int, num_types: int) -> tuple[Tensor, Tensor]:
    count = int(SIZES.square().sum())
    return torch.randint(num_distances + 1, (count,)), torch.randint(num_types, (count, num_distances))


@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("num_types", [0, 3])
def test_the_bias_is_the_formula(token: bool, num_types: int) -> None:
    torch.manual_seed(0)
    distance, path = pairs(5, max(num_types, 1))
    bias = PathBias(2, 5, num_types, token).double()
    found = bias(distance, path, SIZES)
    first = int(token)
    assert found.shape == (3, 2, 4 + first, 4 + first)
    pair = 0
    for graph, size in enumerate(SIZES.tolist()):
        for i in range(size):
            for j in range(size):
                d = int(distance[pair])
                expected = bias.distance.weight[d]
                if bias.edge is not None and bias.step is not None:
                    terms = [bias.edge.weight[int(t)] @ bias.step[k] for k, t in enumerate(path[pair])]
                    expected = expected + sum(terms) / max(d, 1)
                torch.testing.assert_close(found[graph, :, i + first, j + first], expected)
                pair += 1
    if bias.token is not None:
        assert found[:, :, 0].equal(bias.token.view(1, 2, 1).expand(3, 2, 5))
        assert found[:, :, :, 0].equal(bias.token.view(1, 2, 1).expand(3, 2, 5))


def test_the_layer_is_torchs_attention_with_a_feed_forward_block() -> None:
    torch.manual_seed(0)
    layer = GraphormerLayer(8, 2, 0.1, 0.1, 0.1).double().eval()
    layout = Layout.of(torch.arange(3).repeat_interleave(SIZES))
    x, bias = torch.randn(8, 8).double(), torch.randn(3, 2, 4, 4).double()
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).double()
    attention.load_state_dict(layer.attention.state_dict())
    dense, mask = to_dense_batch(layer.input_norm(x), layout.index)
    hidden = torch.zeros(3, 1, 4, dtype=torch.double).masked_fill(~mask[:, None], -torch.inf)
    added = (bias + hidden[:, None]).flatten(0, 1)
    middle = x + attention(dense, dense, dense, attn_mask=added)[0][mask]
    found, edges = layer(x, torch.zeros(2, 0, dtype=torch.long), None, layout, bias)
    torch.testing.assert_close(found, middle + layer.mlp(middle))
    assert edges is None


def test_every_parameter_gets_a_gradient() -> None:
    torch.manual_seed(0)
    bias, layer = PathBias(2, 5, 3, token=True), GraphormerLayer(8, 2)
    layout = Layout.of(torch.arange(3).repeat_interleave(SIZES + 1))
    x, _ = layer(torch.randn(11, 8), torch.zeros(2, 0), None, layout, bias(*pairs(5, 3), SIZES))
    x.square().sum().backward()
    for module in (bias, layer):
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
