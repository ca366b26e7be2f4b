"""Every name of the vocabulary has an implementation, and every implementation has a name there."""

from graphgps_pearl import layers, networks, pearl, vocabulary
from graphgps_pearl.training import metrics


def test_what_is_named_is_what_is_implemented():
    assert set(vocabulary.PEARL_ACTIVATIONS) == set(pearl.ACTIVATIONS)
    assert set(vocabulary.ACTIVATIONS) == set(layers.ACTIVATIONS)
    assert set(vocabulary.LOCAL_LAYERS) == set(layers.LOCAL_MODELS)
    assert set(vocabulary.GLOBAL_LAYERS) == set(layers.GLOBAL_MODELS)
    assert set(vocabulary.GRAPH_HEADS) == set(networks.HEADS)
    assert set(vocabulary.NETWORKS) == set(networks.NETWORKS)
    assert vocabulary.MESSAGE_PASSING == networks.MESSAGE_PASSING
    assert vocabulary.METRICS == metrics.METRICS


def test_pearl_has_every_name():
    assert set(vocabulary.OPERATORS) == set(pearl.GSOS)
    assert set(vocabulary.NORMS) == set(pearl.NORMS)
    assert set(vocabulary.SKIPS) == set(pearl.SKIPS)
    assert set(vocabulary.PAIR_POOLS) == set(pearl.PAIR_POOLS)
