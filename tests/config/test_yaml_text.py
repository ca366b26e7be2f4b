"""Nothing in a config file runs, and nothing in it can make the loader hang or fall over."""

import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphgps_pearl import config
from graphgps_pearl.config.yaml_text import MAX_BYTES, MAX_DEPTH
from graphgps_pearl.errors import ConfigError


@pytest.mark.parametrize(
    "text",
    [
        "out_dir: !!python/object/apply:os.system ['touch {file}']",
        "out_dir: !!python/object/new:os.system ['touch {file}']",
        "out_dir: !!python/name:os.system",
        "!!python/object/apply:os.system ['touch {file}']",
        "!!python/object/apply:os.system ['touch {file}']: 1",
        "posenc_RWSE: {{kernel: {{times_func: \"__import__('os').system('touch {file}')\"}}}}",
        "posenc_RWSE: {{kernel: {{times_func: \"range(1, __import__('os').system('touch {file}'))\"}}}}",
        "posenc_RWSE: {{kernel: {{times: __import__('os').system('touch {file}')}}}}",
        "seed: __import__('os').system('touch {file}')",
    ],
)
def test_nothing_runs(text: str, tmp_path) -> None:
    file = tmp_path / "ran"
    with pytest.raises(ConfigError):
        config.parse(text.format(file=file))
    assert not file.exists()


def test_words_do_not_run(tmp_path) -> None:
    file = tmp_path / "ran"
    call = f"__import__('os').system('touch {file}')"
    cfg = config.parse("seed: 1", ["wandb.name", call])
    assert cfg.wandb.name == call and not file.exists()
    for key in ("seed", "optim.steps", "optim.base_lr", "gt.batch_norm", "posenc_RWSE.kernel.times_func"):
        with pytest.raises(ConfigError):
            config.parse("seed: 1", [key, call])
    assert not file.exists()


@pytest.mark.parametrize(
    "text", ["seed: !!int 3", "name_tag: !!str 3", "seed: !mine 3", "gt: !!map {layers: 3}"]
)
def test_tags_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"config:1: YAML tags such as '.*' are not allowed"):
        config.parse(text)


@pytest.mark.parametrize(
    "text", ["a: &a 1", "seed: *a", "a: &a {b: 1}\nc: {<<: *a}", "optim: {steps: &s [1, 2]}", "&k seed: 1"]
)
def test_anchors_and_aliases_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="anchors and aliases"):
        config.parse(text)


@pytest.mark.parametrize("left, right", [("[", "]"), ("{a: ", "}"), ("- ", "")])
def test_depth_is_bounded(left: str, right: str) -> None:
    for depth in (MAX_DEPTH + 2, 10_000):
        with pytest.raises(ConfigError) as caught:
            config.parse(f"optim: {left * depth}{right * depth}" if right else left * depth)
        assert str(caught.value).isprintable()


def test_size_is_bounded(tmp_path) -> None:
    path = tmp_path / "large.yaml"
    path.write_text("seed: 1\n" + "#" * MAX_BYTES)
    with pytest.raises(ConfigError, match=r"large\.yaml: is larger than 256 kB"):
        config.load(path)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no /dev/zero")  # noqa: PTH110
def test_endless_file_ends() -> None:
    with pytest.raises(ConfigError):
        config.load("/dev/zero")


def test_byte_order_mark_is_no_part_of_the_first_key(tmp_path) -> None:
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbfseed: 7\r\nround: 3\r\n")
    cfg = config.load(path)
    assert (cfg.seed, cfg.round) == (7, 3)


YAML_WORDS = st.sampled_from(
    [*"[]{}'\"|>#?\t\n\0\x85é", ": ", "  ", "- ", "&a ", "*a", "<<", "---", "1e-5", "null"]
)
NAMES = st.sampled_from(
    ["seed", "gt", "layers", "dataset", "node_encoder_name", "Atom+BPEARL", "!!python/name:os "]
)


@settings(max_examples=300, deadline=None)
@example("\ud800")
@example("a" * 5000 + ": 1")
@example("seed: " + "9" * 5000)
@given(st.one_of(st.text(max_size=60), st.lists(YAML_WORDS | NAMES, max_size=30).map("".join)))
def test_any_text_loads_or_ends_in_one_line(text: str) -> None:
    try:
        config.parse(text)
    except ConfigError as error:
        assert str(error).isprintable() and len(str(error)) < 1000


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(config.SCHEMA)) | st.text(max_size=20), JUNK), max_size=3))
def test_any_words_load_or_end_in_one_line(pairs: list[tuple[str, object]]) -> None:
    try:
        config.parse("seed: 1", [word for pair in pairs for word in pair])
    except ConfigError as error:
        assert str(error).isprintable() and len(str(error)) < 1000
