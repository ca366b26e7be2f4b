"""Naming an encoder is enough, a warm-up ends before the training, and old names of keys still load."""

import logging

import pytest
from helpers.upstream_configs import ZINC_RWSE

from graphgps_pearl import config
from graphgps_pearl.config import loading
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.runs.folder import first_change, settings

NAME = "dataset.node_encoder_name"


@pytest.fixture
def said(caplog):
    loading.say_once.cache_clear()
    caplog.set_level(logging.INFO, "graphgps_pearl")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize(
    "encoding, filled",
    {
        "RWSE": {"model": "Linear", "raw_norm_type": "BatchNorm", "kernel.times_func": "range(1,21)"},
        "LapPE": {"model": "DeepSet", "layers": 2},
        "SignNet": {"model": "DeepSet", "post_layers": 2},
    }.items(),
)
def test_naming_an_encoder_is_enough(encoding, filled, said) -> None:
    cfg = config.load("configs/quickstart.yaml", [NAME, f"Atom+{encoding}"])
    assert {key: loading.get(cfg, f"posenc_{encoding}.{key}") for key in filled} == filled
    (line,) = said()
    assert all(f"posenc_{encoding}.{key} = {value}" in line for key, value in filled.items())
    assert config.parse(config.dump(cfg)) == cfg
    config.load("configs/quickstart.yaml", [NAME, f"Atom+{encoding}"])
    assert said() == [line]


def test_what_was_set_stays(said) -> None:
    words = [NAME, "Atom+RWSE", "posenc_RWSE.model", "MLP", "posenc_RWSE.kernel.times", "[1, 2]"]
    cfg = config.load("configs/quickstart.yaml", words)
    group = cfg.posenc_RWSE
    assert (group.model, group.raw_norm_type, config.kernel_times(group.kernel)) == ("MLP", "none", [1, 2])
    assert not said()


def test_a_network_that_is_set_to_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"posenc_RWSE.model = none: expected Linear or MLP"):
        config.load("configs/quickstart.yaml", [NAME, "Atom+RWSE", "posenc_RWSE.model", "none"])
    with pytest.raises(ConfigError, match=r"posenc_SignNet.post_layers = 0: expected at least 1"):
        config.load("configs/quickstart.yaml", [NAME, "Atom+SignNet", "posenc_SignNet.post_layers", "0"])


def test_a_resolved_config_takes_another_encoder(tmp_path) -> None:
    """A run's config.yaml has every key, the empty ones of encodings that it does not use among them."""
    path = tmp_path / "config.yaml"
    path.write_text(config.dump(config.load("configs/quickstart.yaml")))
    assert config.load(path, [NAME, "Atom+RWSE"]).posenc_RWSE.model == "Linear"
    cfg = config.override(config.load("configs/quickstart.yaml"), [NAME, "Atom+SignNet"])
    assert cfg.posenc_SignNet.model == "DeepSet"


def test_a_warm_up_beyond_the_last_epoch_is_clamped(said) -> None:
    cfg = config.parse(ZINC_RWSE, ["optim.max_epoch", "30"], name="short.yaml")
    assert cfg.optim.num_warmup_epochs == 3
    assert any("optim.num_warmup_epochs" in line and "50" in line and "3" in line for line in said())
    assert config.parse(config.dump(cfg)) == cfg
    assert config.parse(ZINC_RWSE, ["optim.max_epoch", "51"]).optim.num_warmup_epochs == 50
    assert config.parse(ZINC_RWSE, ["optim.max_epoch", "1"]).optim.num_warmup_epochs == 0


OLD = [
    ("posenc_RPEARL.law", "posenc_RPEARL.distribution", "sobol"),
    ("posenc_RPEARL.num_tables", "posenc_RPEARL.num_eval_draws", 4),
    ("posenc_RandomID.law", "posenc_RandomID.distribution", "rademacher"),
]


@pytest.mark.parametrize("old, new, value", OLD)
def test_old_keys_load_and_say_so_once(old, new, value, said) -> None:
    group, key = old.split(".")
    in_a_file = config.parse(f"{group}:\n  {key}: {value}\n", name="old.yaml")
    on_the_command_line = config.parse("seed: 1\n", [old, value], name="old.yaml")
    assert loading.get(in_a_file, new) == loading.get(on_the_command_line, new) == value
    assert key not in in_a_file[group]
    (line,) = said()
    assert old in line and new in line
    assert config.read(old, str(value)) == value


def test_a_key_under_both_names_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"both.yaml:3: .*posenc_RPEARL.distribution"):
        config.parse("posenc_RPEARL:\n  distribution: sobol\n  law: gaussian\n", name="both.yaml")


def test_a_bad_value_of_an_old_key_names_the_key_that_was_written() -> None:
    with pytest.raises(ConfigError, match=r"old.yaml:2: posenc_RPEARL.distribution = normal: .*gaussian"):
        config.parse("posenc_RPEARL:\n  law: normal\n", name="old.yaml")


def test_folders_of_old_runs_and_models_are_of_the_same_settings(tmp_path) -> None:
    """A run goes on, and a model loads, from a config.yaml with the old names."""
    cfg = config.load("configs/zinc-rpearl.yaml", ["posenc_RPEARL.distribution", "sobol"])
    new = config.dump(cfg)
    old = new.replace("  distribution:", "  law:").replace("  num_eval_draws:", "  num_tables:")
    assert old != new
    assert first_change(settings(old), settings(new)) is None
    (tmp_path / "config.yaml").write_text(old)
    assert config.load(tmp_path / "config.yaml") == cfg


CSV = """\
dataset: {format: csv, path: mine.csv, task: graph, task_type: regression}
"""


def test_targets_of_a_csv_are_standardised_unless_that_is_switched_off() -> None:
    cfg = config.parse(CSV)
    assert cfg.dataset.standardise and config.parse(config.dump(cfg)) == cfg
    off = config.parse(CSV, ["dataset.standardise", "False"])
    assert not off.dataset.standardise and config.parse(config.dump(off)) == off
    assert not config.override(off, ["seed", "1"]).dataset.standardise
    assert not config.parse(CSV, ["dataset.task_type", "classification_binary"]).dataset.standardise
    assert not config.load("configs/zinc-none.yaml").dataset.standardise
    with pytest.raises(ConfigError, match=r"dataset.standardise = True: .*regression"):
        words = ["dataset.task_type", "classification_binary", "dataset.standardise", "True"]
        config.parse(CSV, words)
