"""The keys and values of a search, as a user writes them."""

import pytest
from helpers.small_runs import CONFIG

from graphgps_pearl import config
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.experiments import search as searching
from graphgps_pearl.experiments.search_space import parse_dimension, parse_space

RATE = "optim.base_lr=1e-4:1e-2:log"


def test_words_behind_the_keys_are_settings():
    args = searching.read_arguments(
        ["a.yaml", "seed", "1", "--keys", RATE, "gt.layers=1,2", "gt.n_heads", "2"]
    )
    assert args.keys == [RATE, "gt.layers=1,2"]
    assert args.overrides == ["seed", "1", "gt.n_heads", "2"]


def test_values_have_the_types_of_the_schema():
    cfg = config.parse(CONFIG)
    layers, rate, skip, scale = parse_space(
        [
            "posenc_RPEARL.num_layers=1:8:3",
            RATE,
            "posenc_RPEARL.skip=none,sum",
            "posenc_RPEARL.scale=True,no",
        ],
        cfg,
    )
    distribution = layers.distribution()
    assert (distribution.low, distribution.high, distribution.step) == (1, 7, 3)
    assert rate.distribution().log
    assert skip.distribution().choices == ("none", "sum")
    assert scale.choices == (True, False)
    with pytest.raises(ConfigError, match="expected a number"):
        parse_dimension("optim.base_lr=small,large")
