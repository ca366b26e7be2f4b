"""What a good config means: files, words over them, encodings, and its text."""

import logging
from pathlib import Path

import numpy as np
import pytest
from helpers.upstream_configs import PEPTIDES_STRUCT, ZINC_RWSE

from graphgps_pearl import config
from graphgps_pearl.config.schema import get
from graphgps_pearl.errors import ConfigError


@pytest.mark.parametrize("text", [ZINC_RWSE, PEPTIDES_STRUCT], ids=["zinc", "peptides"])
def test_graphgps_files_load_unchanged(text: str, tmp_path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    cfg = config.load(path)
    assert cfg.is_frozen()
    assert config.parse(config.dump(cfg)) == cfg


def test_values_of_a_graphgps_file() -> None:
    cfg = config.parse(ZINC_RWSE)
    assert cfg.optim.weight_decay == 1e-5 and isinstance(cfg.optim.weight_decay, float)  # text to YAML 1.1
    assert cfg.posenc_RWSE.kernel.times_func == "range(1,21)"
    assert config.kernel_times(cfg.posenc_RWSE.kernel) == list(range(1, 21))
    assert cfg.gt.attn_dropout == 0.5 and cfg.gt.layer_norm is False
    assert cfg.dataset.node_encoder_bn is False
    assert config.encodings(cfg) == ("RWSE",)
    assert cfg.optim.steps == [30, 60, 90]  # not set there: the default


def test_what_is_not_used_is_said_once(caplog) -> None:
    with caplog.at_level(logging.INFO, "graphgps_pearl"):
        cfg = config.parse(ZINC_RWSE, ["gnn.self_msg", "add"], name="zinc.yaml")
    assert [record.getMessage() for record in caplog.records] == [
        "zinc.yaml: accepted, but not used here: gnn.agg, gnn.self_msg"
    ]
    assert config.unused(cfg) == ["gnn.agg", "gnn.self_msg"]


def test_keys_of_an_encoding_that_is_not_named_are_said_to_have_no_effect(caplog) -> None:
    words = ["posenc_RPEARL.num_samples", "5", "posenc_RWSE.dim_pe", "20", "posenc_LapPE.enable", "False"]
    with caplog.at_level(logging.INFO, "graphgps_pearl"):
        config.parse(ZINC_RWSE, words, name="mine.yaml")
    assert "mine.yaml: without effect, as dataset.node_encoder_name names no such encoding: " + words[0] in [
        record.getMessage() for record in caplog.records
    ]


@pytest.mark.parametrize(
    ("words", "used"),
    [
        (("model.type", "gnn"), True),
        (("model.type", "custom_gnn", "gnn.layer_type", "generalconv"), True),
        (("model.type", "custom_gnn", "gnn.layer_type", "ginconv"), False),
        (("model.type", "GPSModel", "gt.layer_type", "GIN+Transformer", "gnn.dim_inner", 64), False),
    ],
)
def test_what_graphgyms_own_layers_read_is_used_where_they_are(words, used) -> None:
    cfg = config.parse("gnn: {agg: mean}", words)
    assert ("gnn.agg" in config.unused(cfg)) != used


def test_keys_that_an_encoding_does_not_read_are_said_to_be_unused() -> None:
    """GraphGPS gives RWSE and SignNet the keys of LapPE too, and reads them no more than we do."""
    words = ("posenc_SignNet.raw_norm_type", "BatchNorm", "posenc_RWSE.post_layers", 2)
    assert config.unused(config.parse("seed: 1", words)) == [
        "posenc_RWSE.post_layers",
        "posenc_SignNet.raw_norm_type",
    ]


def test_nothing_is_said_of_defaults(caplog) -> None:
    config.parse("view_emb: False\nseed: 3\n")
    assert not caplog.records


@pytest.mark.parametrize(
    "key, written, value",
    [
        ("optim.weight_decay", "0", 0.0),
        ("optim.weight_decay", "1e-5", 1e-5),
        ("optim.weight_decay", "1E-5", 1e-5),
        ("optim.weight_decay", ".5", 0.5),
        ("optim.weight_decay", "'1e-5'", 1e-5),
        ("optim.max_epoch", "+7", 7),
        ("gt.batch_norm", "off", False),
        ("gt.batch_norm", "true", True),
        ("gt.batch_norm", "True", True),
        ("optim.steps", "[1, 2]", [1, 2]),
        ("optim.steps", "[]", []),
        ("dataset.split", "[1000, 200, 30]", [1000.0, 200.0, 30.0]),
        ("dataset.target_columns", "[logP, 'no']", ["logP", "no"]),
        ("train.precision", "32", "32"),
        ("optim.optimizer", "ADAMW", "adamW"),
        ("optim.scheduler", "steps", "step"),
        ("dataset.task_type", "classification_multi", "classification"),
        ("posenc_RWSE.raw_norm_type", "batchnorm", "BatchNorm"),
        ("posenc_LapPE.eigen.laplacian_norm", "none", "none"),
        ("posenc_GraphormerBias.num_spatial_types", "null", None),
        ("posenc_GraphormerBias.num_spatial_types", "20", 20),
        ("posenc_BPEARL.pool", "mean+std", "mean+std"),
        ("posenc_RWSE.kernel.times_func", "range( 2, 20, 3 )", "range( 2, 20, 3 )"),
        ("accelerator", "cuda:1", "cuda:1"),
    ],
)
def test_files_and_words_are_read_alike(key: str, written: str, value: object) -> None:
    *groups, leaf = key.split(".")
    text = "".join(f"{'  ' * depth}{group}:\n" for depth, group in enumerate(groups))
    from_file = get(config.parse(f"{text}{'  ' * len(groups)}{leaf}: {written}\n"), key)
    assert from_file == value and type(from_file) is type(value)
    if written != "'1e-5'":
        from_words = get(config.parse("seed: 0", [key, written]), key)
        assert from_words == value and type(from_words) is type(value)


def test_words_may_be_python_values() -> None:
    words = ["optim.base_lr", 1, "gt.batch_norm", False, "optim.steps", (3, 5), "name_tag", "no", "seed", 4]
    cfg = config.parse("seed: 0", words)
    assert cfg.optim.base_lr == 1.0 and isinstance(cfg.optim.base_lr, float)
    assert (cfg.gt.batch_norm, cfg.optim.steps, cfg.name_tag, cfg.seed) == (False, [3, 5], "no", 4)


def test_text_is_taken_as_it_stands() -> None:
    for text in ("a: b", "#x", "*star", "[a]", "no", "null", "007", " spaced ", "ünï", "'quoted'"):
        cfg = config.parse("seed: 0", ["name_tag", text])
        assert cfg.name_tag == text
        assert config.parse(config.dump(cfg)) == cfg


def test_later_words_win() -> None:
    assert config.parse("seed: 1", ["seed", "2", "seed", "3"]).seed == 3


def test_group_without_keys_is_no_change() -> None:
    assert config.parse("gt:\n# layers: 3\nseed: 0\n") == config.defaults()


def test_naming_switches_on() -> None:
    cfg = config.parse(
        "gnn: {dim_inner: 32}\ndataset: {node_encoder: True, node_encoder_name: Atom+BPEARL+RPEARL}"
    )
    assert config.encodings(cfg) == ("BPEARL", "RPEARL")
    assert cfg.posenc_BPEARL.enable and cfg.posenc_RPEARL.enable and not cfg.posenc_RWSE.enable


def test_names_of_others_are_not_judged_here() -> None:
    words = "dataset.node_encoder_name Theirs+RWSE model.type TheirNet gnn.head theirs model.graph_pooling t"
    cfg = config.parse(ZINC_RWSE, words.split())
    assert config.encodings(cfg) == ("RWSE",)


def test_naming_others_on_the_command_line_switches_the_files_off() -> None:
    cfg = config.parse(ZINC_RWSE, ["dataset.node_encoder_name", "TypeDictNode+BPEARL"])
    assert cfg.posenc_BPEARL.enable and not cfg.posenc_RWSE.enable
    cfg = config.parse(config.dump(config.parse(ZINC_RWSE)), ["dataset.node_encoder_name", "TypeDictNode"])
    assert config.encodings(cfg) == () and not cfg.posenc_RWSE.enable


def test_encodings_of_every_layer_take_no_columns_of_the_input() -> None:
    words = ["dataset.node_encoder_name", "TypeDictNode+RWSE+BPEARL", "posenc_BPEARL.dim_pe", "40"]
    with pytest.raises(ConfigError, match="in sum 68"):
        config.parse(ZINC_RWSE, words)
    config.parse(ZINC_RWSE, [*words, "posenc_BPEARL.inject", "every_layer"])


def test_regression_without_a_loss_means_mse() -> None:
    assert config.parse("dataset: {task_type: regression}").model.loss_fun == "mse"
    assert config.parse("dataset: {task_type: classification}").model.loss_fun == "cross_entropy"


def test_override_leaves_the_original_alone() -> None:
    cfg = config.parse(ZINC_RWSE)
    other = config.override(cfg, ["dataset.node_encoder_name", "TypeDictNode+RPEARL", "seed", "5"])
    assert (cfg.seed, other.seed) == (0, 5)
    assert other.is_frozen() and config.encodings(other) == ("RPEARL",) and config.encodings(cfg) == ("RWSE",)
    assert config.override(cfg, []) == cfg
    with pytest.raises(ConfigError, match=r"command line: gt\.n_heads = 5: must divide"):
        config.override(cfg, ["gt.n_heads", "5"])


def test_override_takes_paths_and_values_of_numpy() -> None:
    values = ["dataset.dir", Path("a") / "b", "seed", np.int64(3), "optim.base_lr", np.float32(0.1)]
    values += ["gt.edge_update", np.bool(True), "optim.steps", list(np.arange(1, 3))]
    plain = ["dataset.dir", str(Path("a/b")), "seed", 3, "optim.base_lr", 0.1]
    plain += ["gt.edge_update", True, "optim.steps", [1, 2]]
    cfg = config.override(config.parse(ZINC_RWSE), values)
    assert cfg == config.parse(ZINC_RWSE, plain)
    with pytest.raises(ConfigError, match=r"seed = 0\.5: expected an integer"):
        config.override(cfg, ["seed", np.float64(0.5)])


def test_configs_are_frozen() -> None:
    with pytest.raises(AttributeError):
        config.parse("seed: 1").gt.layers = 4


def test_defaults_come_back() -> None:
    assert config.parse(config.dump(config.defaults())) == config.defaults()
    config.defaults().optim.steps.append(7)
    assert config.defaults().optim.steps == [30, 60, 90]


def test_a_group_of_ones_own(monkeypatch) -> None:
    from graphgps_pearl.config import schema

    monkeypatch.setattr(schema, "_HELP", dict(schema._HELP))
    before = dict(config.SCHEMA)
    keys = {
        "enable": config.Key(False, "Set by naming it."),
        "dim_pe": config.Key(4, "Columns.", min=1),
        "rate": config.Key(0.5, "A rate.", min=0, max=1),
        "model": config.Key("wide", "Its network, by a name that no encoding of ours has."),
    }
    try:
        config.add_group("posenc_Mine", keys)
        config.add_group("posenc_Mine", keys)
        with pytest.raises(ValueError, match="posenc_Mine"):
            config.add_group("posenc_Mine", {"dim_pe": config.Key(8, "Columns.", min=1)})
        text = "dataset: {node_encoder: True, node_encoder_name: Atom+Mine}\nposenc_Mine: {rate: 1}\n"
        cfg = config.parse(text)
        assert cfg.posenc_Mine.enable and cfg.posenc_Mine.rate == 1.0
        assert config.parse(config.dump(cfg)) == cfg
        with pytest.raises(ConfigError, match=r"posenc_Mine\.rate = 2: expected a number >= 0 and <= 1"):
            config.parse(text, ["posenc_Mine.rate", "2"])
        with pytest.raises(ConfigError, match=r"posenc_Mine\.dim_pe = 99: must be at most gnn\.dim_inner"):
            config.parse(text, ["posenc_Mine.dim_pe", "99"])
    finally:
        for key in set(config.SCHEMA) - set(before):
            del config.SCHEMA[key]


def test_a_file_builds_on_the_one_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ground.yaml").write_text("seed: 3\noptim:\n  max_epoch: 7\n  base_lr: 0.5\n")
    (tmp_path / "middle.yaml").write_text("base: ground.yaml\noptim:\n  base_lr: 0.25\n")
    (tmp_path / "top.yaml").write_text("base: middle.yaml\nseed: 4\n")
    cfg = config.load(tmp_path / "top.yaml", ["optim.max_epoch", "9", "optim.scheduler", "none"])
    assert (cfg.seed, cfg.optim.max_epoch, cfg.optim.base_lr) == (4, 9, 0.25)
    assert config.parse(config.dump(cfg)) == cfg


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base: absent.yaml\n", r"absent.yaml: no such file"),
        ("base: zinc-bpearl.yaml\n", r"top.yaml: base = zinc-bpearl.yaml: no such file beside it; .* --copy"),
        (
            "base: ../top.yaml\n",
            r"top.yaml: base = ../top.yaml: expected the name of a file in the same folder",
        ),
        ("base: [a.yaml]\n", r"base = \[a.yaml\]: expected the name of a file"),
        ("base: top.yaml\n", r"base: the files top.yaml build on each other"),
    ],
)
def test_a_base_that_cannot_be_used(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "top.yaml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        config.load(tmp_path / "top.yaml")


def test_text_without_a_file_has_no_base() -> None:
    with pytest.raises(ConfigError, match=r"base = x\.yaml: unknown key"):
        config.parse("base: x.yaml\n")
