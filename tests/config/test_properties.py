"""Dumping and loading is the identity, for any values the schema allows."""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from graphgps_pearl import config
from graphgps_pearl.config.key import BadValueError, Key
from graphgps_pearl.config.loading import _flatten
from graphgps_pearl.config.schema import get, put
from graphgps_pearl.config.yaml_text import parse_yaml
from graphgps_pearl.errors import ConfigError

BPEARL = """
gnn: {dim_inner: 64}
dataset: {node_encoder: True, node_encoder_name: Atom+BPEARL, task_type: regression}
"""
PRINTABLE = st.characters(exclude_categories=("C", "Z")) | st.sampled_from(" :#'\"[]{},&*!|>%@`-?")


def scalars(entry: Key) -> st.SearchStrategy:
    if entry.choices:
        return st.sampled_from(entry.choices)
    if entry.item is bool:
        return st.booleans()
    if entry.item is str:
        return st.text(PRINTABLE, max_size=12) | st.text(string.ascii_letters, min_size=1, max_size=8)
    low = entry.min if entry.min is not None else entry.above
    high = entry.max if entry.max is not None else entry.below
    if entry.item is int:
        return st.integers(low if low is not None else -(2**40), high if high is not None else 2**40)
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


def allowed(entry: Key, value: object) -> bool:
    try:
        return entry.read(value) == value
    except BadValueError:
        return False


def values(entry: Key) -> st.SearchStrategy:
    fewest, most = entry.length
    some = scalars(entry)
    if entry.is_list:
        some = st.lists(some, min_size=fewest, max_size=min(most, 4))
    fitting = some.filter(lambda value: allowed(entry, value))
    return st.just(entry.default) | fitting if entry.check else fitting


KEY_AND_VALUE = st.sampled_from(sorted(config.SCHEMA)).flatmap(
    lambda key: st.tuples(st.just(key), values(config.SCHEMA[key]))
)


@settings(max_examples=100, deadline=None)
@given(st.lists(KEY_AND_VALUE, max_size=10))
def test_every_value_survives_yaml(pairs: list[tuple[str, object]]) -> None:
    """The reader alone, so that no rule between keys narrows what is tried."""
    cfg = config.defaults()
    for key, value in pairs:
        put(cfg, key, value)
    tree = parse_yaml(config.dump(cfg), "dump")
    again = {setting.key: config.SCHEMA[setting.key].read(setting.raw) for setting in _flatten(tree, "dump")}
    assert again == {key: get(cfg, key) for key in config.SCHEMA}
    assert all(type(value) is type(get(cfg, key)) for key, value in again.items())


@settings(max_examples=100, deadline=None)
@given(st.lists(KEY_AND_VALUE, max_size=6))
def test_dump_then_load_is_the_identity(pairs: list[tuple[str, object]]) -> None:
    try:
        cfg = config.parse(BPEARL, [word for pair in pairs for word in pair])
    except ConfigError:
        return  # a combination that cannot work
    assert config.parse(config.dump(cfg)) == cfg
