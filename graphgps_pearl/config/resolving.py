"""What follows from the keys that were set: which encodings are on, and the loss that goes with the task.

A value that somebody set is never changed behind their back: where it contradicts, that is an error. The
command line goes before the file, so naming another encoder there switches the file's encodings off.
"""

from __future__ import annotations

from collections.abc import Mapping

from yacs.config import CfgNode

from graphgps_pearl.config.schema import SCHEMA
from graphgps_pearl.errors import ConfigError

NAME = "dataset.node_encoder_name"


def known_encodings() -> tuple[str, ...]:
    """Names of the encodings that have a group ``posenc_<NAME>``."""
    ends = (".enable", "posenc_")
    return tuple(
        k.removeprefix(ends[1]).removesuffix(ends[0])
        for k in SCHEMA
        if k.startswith(ends[1]) and k.endswith(ends[0])
    )


def encodings(cfg: CfgNode) -> tuple[str, ...]:
    """The encodings named in ``dataset.node_encoder_name`` that have a config group, in that order."""
    if not cfg.dataset.node_encoder:
        return ()
    known = known_encodings()
    return tuple(part for part in cfg.dataset.node_encoder_name.split("+") if part in known)


def resolve(cfg: CfgNode, layers: Mapping[str, int], name: str) -> None:
    """Fill in what follows; ``layers`` says which source set a key (see :class:`.loading.Setting`)."""
    _switch_encodings(cfg, layers, name)
    if cfg.dataset.task_type == "regression" and not layers.get("model.loss_fun"):
        # GraphGym's default loss is for classification; it makes the same change.
        cfg.model["loss_fun"] = "mse"


def _switch_encodings(cfg: CfgNode, layers: Mapping[str, int], name: str) -> None:
    named = encodings(cfg)
    for encoding in known_encodings():
        group = cfg[f"posenc_{encoding}"]
        on, key = encoding in named, f"posenc_{encoding}.enable"
        newest = max(layers.get(NAME, 0), layers.get("dataset.node_encoder", 0))
        if group.enable != on and layers.get(key, 0) >= max(newest, 1):
            composed = cfg.dataset.node_encoder_name
            names = f"{NAME} = {composed}" + (
                "" if cfg.dataset.node_encoder else " with dataset.node_encoder = False"
            )
            mend = (
                f"name it there, such as {composed}+{encoding}"
                if group.enable
                else f"leave {encoding} out there"
            )
            raise ConfigError(
                f"{name}: {key} = {group.enable}: contradicts {names}; {mend}, or do not set {key}"
            )
        group["enable"] = on
