"""From a model to a model folder and back; :mod:`graphgps_pearl.runs.model_folder` has its files.

A folder is written under another name and renamed, so it is whole or absent.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn
from yacs.config import CfgNode

from graphgps_pearl import config, networks
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.model import Model
from graphgps_pearl.runs.folder import flatten
from graphgps_pearl.runs.model_folder import (
    CARD,
    CONFIG,
    DESCRIPTION,
    WEIGHTS,
    read_description,
    read_weights,
    write_description,
)

#: Keys that say where things were on the training machine; a model folder has their defaults.
_OF_THIS_MACHINE = ("out_dir", "dataset.dir", "accelerator", "devices", "num_workers", "num_threads")


def write_model(model: Model, folder: Path, *, overwrite: bool = False, notes: str = "") -> None:
    """Write a model folder; ``notes`` go to the limits in its card."""
    is_model = (folder / DESCRIPTION).is_file()
    if folder.exists() and not (overwrite and is_model):
        can = "give --overwrite to replace it" if is_model else "choose another name"
        raise DataError(f"{folder}: exists already; {can}")
    weights = {name: value.detach().cpu().clone().contiguous() for name, value in state_of(model.network)}
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        save_file(weights, temporary / WEIGHTS, metadata={"format": "pt"})
        (temporary / WEIGHTS).chmod(0o644)  # it comes private to its owner
        (temporary / CONFIG).write_text(config.dump(without_places(model.cfg)), encoding="utf-8")
        (temporary / CARD).write_text(write_card(model.cfg, model.facts, notes), encoding="utf-8")
        write_description(model.facts.to_json(), temporary)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise DataError(f"{folder}: cannot be written ({reason})") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_model(folder: Path, device: str | torch.device = "cpu") -> Model:
    """Read a model folder, whose files must be those that were exported."""
    facts = read_facts(folder)
    cfg = config.load(folder / CONFIG)
    network = build_network(cfg, facts, read_weights(folder), str(folder / WEIGHTS))
    return Model(cfg, facts, network, device)


def read_facts(folder: Path) -> ModelFacts:
    """What a model has to know of its data."""
    return ModelFacts.from_json(read_description(folder), str(folder / DESCRIPTION))


def build_network(cfg: CfgNode, facts: ModelFacts, weights: Mapping[str, Tensor], where: str) -> nn.Module:
    """The config's network with these weights, all of them and no others.

    Shapes are compared before memory is taken: the network is first built without any.
    """
    _require_plausible_sizes(cfg, weights, where)
    dtype = torch.float64 if cfg.train.precision == "64" else torch.float32
    with torch.device("meta"):
        shapes = dict(state_of(networks.build(cfg, facts.dim_in, facts.dim_out).to(dtype)))
    differing = sorted(weights.keys() ^ shapes.keys())
    for name in shapes.keys() & weights.keys():
        if weights[name].shape != shapes[name].shape or weights[name].dtype != shapes[name].dtype:
            differing.append(name)
    if differing:
        more = f" and {len(differing) - 1} more" if len(differing) > 1 else ""
        raise DataError(f"{where}: the weights are not those of its config.yaml ({differing[0]}{more})")
    network = networks.build(cfg, facts.dim_in, facts.dim_out).to(dtype)
    network.load_state_dict(dict(weights))
    return network


def _require_plausible_sizes(cfg: CfgNode, weights: Mapping[str, Tensor], where: str) -> None:
    """Every layer has a tensor and every width an element of one. More of them than that cannot be, and
    building them could take for ever."""
    elements = sum(value.numel() for value in weights.values())
    for key, value in flatten(cfg).items():
        if key.startswith(("gt.", "gnn.", "posenc_")) and not key.endswith("_seed") and type(value) is int:
            most = max(len(weights), 100) if "layers" in key.split(".")[-1] else max(elements, 100_000)
            if value > most:
                raise DataError(
                    f"{where}: has {len(weights)} tensors of {elements:,} elements, which {key} = {value} in "
                    "its config.yaml does not fit; get the model again"
                )


def state_of(network: nn.Module) -> list[tuple[str, Tensor]]:
    """Weights and running statistics by name."""
    return list(network.state_dict().items())


def without_places(cfg: CfgNode) -> CfgNode:
    """The config as another machine can use it; of the data's file, its name remains."""
    overrides = [word for key in _OF_THIS_MACHINE for word in (key, config.SCHEMA[key].default)]
    pretrained = Path(*Path(cfg.pretrained.dir).parts[-2:]) if cfg.pretrained.dir else ""  # <config>/<seed>
    overrides += ["dataset.path", Path(cfg.dataset.path).name, "pretrained.dir", str(pretrained)]
    return config.override(cfg, overrides)
