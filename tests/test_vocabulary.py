"""Every name of the vocabulary has an implementation, and every implementation has a name there."""

import pytest
import torch

from graphgps_pearl import layers, networks, pearl, vocabulary

TRIANGLE = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])


def test_what_is_named_is_what_is_implemented():
    assert set(vocabulary.PEARL_ACTIVATIONS) == set(pearl.ACTIVATIONS)
    assert set(vocabulary.ACTIVATIONS) == set(layers.ACTIVATIONS)
    assert set(vocabulary.LOCAL_LAYERS) == set(layers.LOCAL_MODELS)
    assert set(vocabulary.GLOBAL_LAYERS) == set(layers.GLOBAL_MODELS)
    assert {*vocabulary.GRAPH_HEADS, *vocabulary.NODE_HEADS, *vocabulary.EDGE_HEADS} == set(networks.HEADS)
    assert set(vocabulary.NETWORKS) == set(networks.NETWORKS)


@pytest.mark.parametrize(
    "module, argument, names",
    [
        (pearl.BPEARL, "gso", vocabulary.OPERATORS),
        (pearl.BPEARL, "norm", vocabulary.NORMS),
        (pearl.BPEARL, "skip", vocabulary.SKIPS),
        (pearl.BPEARL, "end", vocabulary.PHI_ENDS),
        (pearl.BPEARL, "pool", vocabulary.PAIR_POOLS),
        (pearl.RPEARL, "pool", vocabulary.POOLS),
        (pearl.RPEARL, "distribution", vocabulary.DISTRIBUTIONS),
    ],
)
def test_pearl_takes_every_name(module, argument, names):
    for name in names:
        encoding = module(dim_pe=3, hidden_dim=4, num_layers=1, num_taps=2, **{argument: name})
        assert encoding(TRIANGLE, None, 3).shape == (3, 3)
