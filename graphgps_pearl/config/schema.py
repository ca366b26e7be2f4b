"""Every key of the config in one table, the config of all defaults, and the key a user probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches

from yacs.config import CfgNode

from graphgps_pearl.config import data, model, posenc, training
from graphgps_pearl.config.key import Key, Value
from graphgps_pearl.config.unused import unused_keys

SCHEMA: dict[str, Key] = {}
SECTIONS: set[str] = set()  # every name under which further keys stand: gt, posenc_LapPE.eigen, ...
_HELP: dict[str, str] = {}

# Keys that have been renamed: their old names still load.
RENAMED = {
    "posenc_RPEARL.law": "posenc_RPEARL.distribution",
    "posenc_RPEARL.num_tables": "posenc_RPEARL.num_eval_draws",
    "posenc_RandomID.law": "posenc_RandomID.distribution",
}

# Names from other code bases that resemble nothing in ours.
_ELSEWHERE = {
    "device": "accelerator",
    "lr": "optim.base_lr",
    "learning_rate": "optim.base_lr",
    "wd": "optim.weight_decay",
    "epochs": "optim.max_epoch",
    "num_epochs": "optim.max_epoch",
    "warmup_epochs": "optim.num_warmup_epochs",
    "grad_clip": "optim.clip_grad_norm_value",
    "num_heads": "gt.n_heads",
    "loss": "model.loss_fun",
    "pooling": "model.graph_pooling",
    "pearl_k": "posenc_BPEARL.num_taps",
    "pe_dims": "posenc_BPEARL.dim_pe",
    "basis": "posenc_BPEARL.enable",
}


def add_group(name: str, keys: Mapping[str, Key], about: str = "") -> None:
    """Add a config group, such as ``posenc_Mine`` for an encoder of your own, before a config is loaded.

    Adding the same group again changes nothing; other keys under a taken name are a ValueError. An encoding's
    group needs ``enable`` and ``dim_pe``.
    """
    added = {f"{name}.{key}" if name else key: entry for key, entry in keys.items()}
    if any(SCHEMA.get(key, entry) != entry for key, entry in added.items()):
        raise ValueError(f"the config has a group {name} with other keys already")
    for key, entry in added.items():
        if not entry.optional or entry.default is not None:
            entry.read(entry.default)
        SCHEMA[key] = entry
        parts = key.split(".")
        SECTIONS.update(".".join(parts[:depth]) for depth in range(1, len(parts)))
    _HELP.setdefault(name, about)


def groups() -> Iterator[tuple[str, str, dict[str, Key]]]:
    """Name, description and keys (dotted, in full) of every group."""
    for name, about in _HELP.items():
        yield name, about, {key: entry for key, entry in SCHEMA.items() if group_of(key) == name}


def group_of(key: str) -> str:
    """The group a dotted key is in, ``""`` for a key outside any."""
    return key.partition(".")[0] if "." in key else ""


def defaults() -> CfgNode:
    """The config that an empty file would mean, not frozen."""
    cfg = CfgNode()
    for key, entry in SCHEMA.items():
        put(cfg, key, list(entry.default) if isinstance(entry.default, list) else entry.default)
    return cfg


def get(cfg: CfgNode, key: str) -> Value:
    """The value of a dotted key."""
    node = cfg
    for part in key.split("."):
        node = node[part]
    return node


def put(cfg: CfgNode, key: str, value: Value) -> None:
    """Set a dotted key, making the groups it is in; yacs's own checks and freezing do not apply."""
    *path, last = key.split(".")
    node = cfg
    for part in path:
        if part not in node:
            node[part] = CfgNode()
        node = node[part]
    node[last] = value


def nearest(key: str) -> str:
    """How to go on from an unknown key: ``did you mean gt.n_heads?``, or the keys of its group."""
    group, _, leaf = key.rpartition(".")
    if key in RENAMED:
        return f"it is now {_describe(RENAMED[key])}"
    names = [*SCHEMA, *sorted(SECTIONS)]
    siblings = {name.rpartition(".")[2]: name for name in names if name.rpartition(".")[0] == group}
    same_leaf = [name for name in names if name.rpartition(".")[2] == leaf]
    same_leaf.sort(key=lambda name: (not _used(name), -SequenceMatcher(None, key, name).ratio()))
    by_lower = {name.lower(): name for name in names}
    found = (
        [by_lower[name] for name in [key.lower()] if name in by_lower]
        or [siblings[name] for name in get_close_matches(leaf, siblings, n=1, cutoff=0.7)]
        or ([_ELSEWHERE[leaf]] if leaf in _ELSEWHERE else [])
        or same_leaf
        or [siblings[name] for name in get_close_matches(leaf, siblings, n=1)]
        or get_close_matches(key, names, n=1)
    )
    if found:
        return f"did you mean {_describe(found[0])}?"
    return f"{group or 'the config'} has {', '.join(siblings)}" if siblings else "see docs/configuration.md"


def _used(key: str) -> bool:
    return key not in SCHEMA or SCHEMA[key].used


def _describe(key: str) -> str:
    return f"{key} ({SCHEMA[key].allowed})" if key in SCHEMA else f"the group {key}"


for _name, (_about, _keys) in {
    "": training.GROUPS[""],
    **data.GROUPS,
    **posenc.GROUPS,
    **model.GROUPS,
    **training.GROUPS,
}.items():
    add_group(_name, _keys, _about)
for _key, _entry in unused_keys():
    add_group(group_of(_key), {_key.partition(".")[2] or _key: _entry})
