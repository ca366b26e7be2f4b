"""What composed names in a config stand for, and what follows from the keys that were set.

A value that was set is never changed silently: a contradiction is an error. The command line has priority
over the file, so naming another encoder there switches the file's encodings off.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from yacs.config import CfgNode

from graphgps_pearl.config.posenc import NEEDED, SET_UP
from graphgps_pearl.config.schema import SCHEMA, get, put
from graphgps_pearl.errors import ConfigError

NAME = "dataset.node_encoder_name"


def known_encodings() -> tuple[str, ...]:
    """Names of the encodings that have a group ``posenc_<NAME>``."""
    groups = (key.removesuffix(".enable") for key in SCHEMA if key.endswith(".enable"))
    return tuple(group.removeprefix("posenc_") for group in groups if group.startswith("posenc_"))


def encodings(cfg: CfgNode) -> tuple[str, ...]:
    """The encodings named in ``dataset.node_encoder_name`` that have a config group, in that order."""
    if not cfg.dataset.node_encoder:
        return ()
    known = known_encodings()
    return tuple(part for part in cfg.dataset.node_encoder_name.split("+") if part in known)


def layer_parts(cfg: CfgNode) -> tuple[str, str]:
    """The local and the global part of a GPS layer; empty for other networks."""
    local, _, attention = cfg.gt.layer_type.partition("+")
    return (local, attention) if cfg.model.type == "GPSModel" else ("", "")


def resolve(cfg: CfgNode, layers: Mapping[str, int], name: str) -> Iterator[str]:
    """Fill in what follows, and yield what a user should know of it.

    ``layers`` says which source set a key (see :class:`.loading.Setting`).
    """
    _switch_encodings(cfg, layers, name)
    yield from _set_up_encodings(cfg, layers)
    optim = cfg.optim
    if optim.scheduler.endswith("_with_warmup") and optim.num_warmup_epochs >= optim.max_epoch:
        beyond, optim["num_warmup_epochs"] = optim.num_warmup_epochs, optim.max_epoch // 10
        yield (
            f"optim.num_warmup_epochs = {beyond} would not end within optim.max_epoch = {optim.max_epoch}: "
            f"warm-up of {optim.num_warmup_epochs}, a tenth of the epochs"
        )
    if cfg.dataset.task_type == "regression" and not layers.get("model.loss_fun"):
        # GraphGym's default loss is for classification; it makes the same change.
        cfg.model["loss_fun"] = "mse"
    if cfg.dataset.name in ("MNIST", "CIFAR10") and not layers.get("dataset.edge_encoder_dim_in"):
        cfg.dataset["edge_encoder_dim_in"] = 1  # GraphGPS's own exception
    regression_of_yours = cfg.dataset.format == "csv" and cfg.dataset.task_type == "regression"
    if regression_of_yours and not layers.get("dataset.standardise"):
        cfg.dataset["standardise"] = True


def _switch_encodings(cfg: CfgNode, layers: Mapping[str, int], name: str) -> None:
    named = encodings(cfg)
    for encoding in known_encodings():
        group = cfg[f"posenc_{encoding}"]
        on, key = encoding in named, f"posenc_{encoding}.enable"
        newest = max(layers.get(NAME, 0), layers.get("dataset.node_encoder", 0))
        if group.enable != on and layers.get(key, 0) >= max(newest, 1):
            composed = cfg.dataset.node_encoder_name
            off = "" if cfg.dataset.node_encoder else " with dataset.node_encoder = False"
            remedy = f"name it there, such as {composed}+{encoding}"
            remedy = remedy if group.enable else f"leave {encoding} out there"
            raise ConfigError(
                f"{name}: {key} = {group.enable}: contradicts {NAME} = {composed}{off}; "
                f"{remedy}, or do not set {key}"
            )
        group["enable"] = on


def _set_up_encodings(cfg: CfgNode, layers: Mapping[str, int]) -> Iterator[str]:
    """Values for keys that an encoding needs, that upstream leaves empty and that were not set."""

    def untouched(key: str) -> bool:
        return layers.get(key, 0) < max(layers.get(NAME, 0), 1) and get(cfg, key) == SCHEMA[key].default

    for encoding in encodings(cfg):
        group = f"posenc_{encoding}."
        filled = {}
        whole = untouched(f"{group}model") if encoding in SET_UP else False
        for key, value in SET_UP.get(encoding, {}).items():
            given = key == "kernel.times_func" and cfg.posenc_RWSE.kernel.times
            if untouched(group + key) and (whole or key in NEEDED) and not given:
                put(cfg, group + key, value)
                filled[group + key] = value
        if filled:
            values = ", ".join(f"{key} = {value}" for key, value in filled.items())
            yield f"{encoding} is named in {NAME}, filled in: {values}"
