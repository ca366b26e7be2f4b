"""Every key of the config in one table, and the config that all defaults make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from yacs.config import CfgNode

from graphgps_pearl.config.groups import GROUPS
from graphgps_pearl.config.key import Key, Value

SCHEMA: dict[str, Key] = {}
SECTIONS: set[str] = set()  # every name under which further keys stand: gt, posenc_LapPE.eigen, ...
_HELP: dict[str, str] = {}


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
    """Set a dotted key, making the groups on the way; yacs's own checks and freezing are passed by."""
    *path, last = key.split(".")
    node = cfg
    for part in path:
        if part not in node:
            node[part] = CfgNode()
        node = node[part]
    node[last] = value


for _name, _module in GROUPS.items():
    add_group(_name, _module.KEYS, _module.__doc__ or "")
