"""The schema itself: upstream's keys and defaults, and the other rooms' names."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from yacs.config import CfgNode

from graphgps_pearl import config
from graphgps_pearl.config.__main__ import document
from graphgps_pearl.config.schema import groups
from graphgps_pearl.vocabulary import PAIR_POOLS, POOLS

REPOSITORY = Path(__file__).resolve().parents[2]

# What upstream GraphGPS changes in GraphGym's defaults, and what it adds.
GRAPHGPS = {
    "train.mode": "custom", "dataset.name": "none", "round": 5, "name_tag": "", "train.ckpt_best": False,
    "gnn.residual": False, "dataset.node_encoder_num_types": 0, "dataset.edge_encoder_num_types": 0,
    "dataset.slic_compactness": 10, "dataset.infer_link_label": "None", "dataset.split_mode": "standard",
    "dataset.split_index": 0, "dataset.split_dir": "./splits", "run_multiple_splits": [],
    "optim.batch_accumulation": 1, "optim.reduce_factor": 0.1, "optim.schedule_patience": 10,
    "optim.min_lr": 0.0,
    "optim.num_warmup_epochs": 50, "optim.clip_grad_norm": False, "optim.clip_grad_norm_value": 1.0,
    "gt.layer_type": "SANLayer", "gt.layers": 3, "gt.n_heads": 8, "gt.dim_hidden": 64, "gt.full_graph": True,
    "gt.gamma": 1e-5, "gt.pna_degrees": [], "gt.dropout": 0.0, "gt.attn_dropout": 0.0, "gt.layer_norm": False,
    "gt.batch_norm": True, "gt.residual": True, "gt.bigbird.attention_type": "block_sparse",
    "gt.bigbird.chunk_size_feed_forward": 0, "gt.bigbird.is_decoder": False,
    "gt.bigbird.add_cross_attention": False, "gt.bigbird.hidden_act": "relu",
    "gt.bigbird.max_position_embeddings": 128, "gt.bigbird.use_bias": False,
    "gt.bigbird.num_random_blocks": 3,
    "gt.bigbird.block_size": 3, "gt.bigbird.layer_norm_eps": 1e-6,
    "graphormer.num_layers": 6, "graphormer.embed_dim": 80, "graphormer.num_heads": 4,
    "graphormer.dropout": 0.0,
    "graphormer.attention_dropout": 0.0, "graphormer.mlp_dropout": 0.0, "graphormer.input_dropout": 0.0,
    "graphormer.use_graph_token": True, "posenc_GraphormerBias.enable": False,
    "posenc_GraphormerBias.node_degrees_only": False, "posenc_GraphormerBias.dim_pe": 0,
    "posenc_GraphormerBias.num_spatial_types": None, "posenc_GraphormerBias.num_in_degrees": None,
    "posenc_GraphormerBias.num_out_degrees": None, "posenc_EquivStableLapPE.enable": False,
    "posenc_EquivStableLapPE.raw_norm_type": "none", "posenc_SignNet.phi_out_dim": 4,
    "posenc_SignNet.phi_hidden_dim": 64, "posenc_RWSE.kernel.times": [], "posenc_RWSE.kernel.times_func": "",
    "posenc_HKdiagSE.kernel.times": [], "posenc_HKdiagSE.kernel.times_func": "",
    "posenc_ElstaticSE.kernel.times": [], "posenc_ElstaticSE.kernel.times_func": "range(10)",
    "pretrained.dir": "", "pretrained.reset_prediction_head": True, "pretrained.freeze_main": False,
    "wandb.use": False, "wandb.entity": "gtransformers", "wandb.project": "gtblueprint", "wandb.name": "",
    "example_arg": "example", "example_group.example_arg": "example",
    **{
        f"posenc_{name}.{key}": value
        for name in ("LapPE", "SignNet", "RWSE", "HKdiagSE", "ElstaticSE")
        for key, value in {
            "enable": False, "model": "none", "dim_pe": 16, "layers": 3, "n_heads": 4, "post_layers": 0,
            "raw_norm_type": "none", "pass_as_var": False,
        }.items()
    },
    **{
        f"posenc_{name}.eigen.{key}": value
        for name in ("LapPE", "SignNet", "EquivStableLapPE")
        for key, value in {"laplacian_norm": "sym", "eigvec_norm": "L2", "max_freqs": 10}.items()
    },
}  # fmt: skip

# Ours on purpose: torch with six threads is slower than with few on molecules.
OTHERWISE = {"num_threads"}


def flat(node: CfgNode, prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in node.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, CfgNode) else {f"{prefix}{key}": value}
    return found


def test_defaults_are_graphgps_s() -> None:
    from torch_geometric.graphgym import register
    from torch_geometric.graphgym.config import set_cfg

    theirs = CfgNode()
    registered, register.config_dict = register.config_dict, {}
    try:
        set_cfg(theirs)
    finally:
        register.config_dict = registered
    expected = flat(theirs) | GRAPHGPS
    ours = flat(config.defaults())
    assert not set(expected) - set(ours)
    differing = {
        key for key, value in expected.items() if ours[key] != value or type(ours[key]) is not type(value)
    }
    assert differing == OTHERWISE


@pytest.mark.parametrize("key", config.SCHEMA)
def test_every_key_is_described(key: str) -> None:
    entry = config.SCHEMA[key]
    assert entry.help and "\n" not in entry.help and entry.help.endswith(".")
    assert entry.type in (bool, int, float, str) or entry.item in (int, float, str)
    if entry.default is not None:
        assert entry.read(entry.default) == entry.default
        assert type(entry.default) is (list if entry.is_list else entry.type)


def test_groups_with_used_keys_say_what_they_are() -> None:
    for name, about, keys in groups():
        if any(entry.used for entry in keys.values()):
            assert about.endswith("."), name


def test_every_encoding_has_a_switch() -> None:
    """GraphGPS walks the groups posenc_* and reads ``enable`` in each."""
    for name, group in config.defaults().items():
        if name.startswith("posenc_"):
            assert group.enable is False


def test_pearl_groups_are_the_modules_arguments() -> None:
    from graphgps_pearl.pearl import BPEARL, RPEARL

    placed = {"enable", "pass_as_var", "inject"}
    for name, module, keys_only, arguments_only in (
        ("RPEARL", RPEARL, set(), set()),
        ("BPEARL", BPEARL, {"plan", "pair_bias", "pair_dim", "pair_edges"}, {"quotient", "return_pairs"}),
    ):
        group = config.defaults()[f"posenc_{name}"]
        arguments = {k: p for k, p in inspect.signature(module).parameters.items() if k not in arguments_only}
        assert set(group) == set(arguments) | placed | keys_only
        for argument, parameter in arguments.items():
            if parameter.default is not inspect.Parameter.empty:
                assert group[argument] == (0 if parameter.default is None else parameter.default)
    for group, pools in (("posenc_RPEARL", POOLS), ("posenc_BPEARL", PAIR_POOLS)):
        for pool in pools:
            assert config.SCHEMA[f"{group}.pool"].read(pool) == pool


def test_reference_is_up_to_date() -> None:
    written = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == document(), "run: python -m graphgps_pearl.config > docs/configuration.md"


def test_reference_names_every_key() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", document(), flags=re.MULTILINE)
    assert sorted(rows) == sorted(config.SCHEMA)


def test_reference_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "graphgps_pearl.config"], capture_output=True, cwd=REPOSITORY
    )
    assert done.returncode == 0 and done.stdout.decode("utf-8") == document()


def test_shipped_configs_are_deltas() -> None:
    """What equals its default, or the base's value, is left out: a reader sees what a config is about.

    ``scale`` is the exception: configs say what they were tuned with, whatever the default is or becomes.
    """
    from graphgps_pearl.config.loading import file_settings

    for path in sorted((REPOSITORY / "configs").rglob("*.yaml")):
        config.load(path)
        values = {key: entry.default for key, entry in config.SCHEMA.items()}
        for setting in file_settings(path):
            key = config.SCHEMA[setting.key]
            assert key.used, f"{setting.where}: {setting.key} is not used"
            value = key.read(setting.raw)
            tuned_with = setting.key.endswith(".scale")
            assert tuned_with or value != values[setting.key], (
                f"{setting.where}: {setting.key} is that already"
            )
            values[setting.key] = value
