"""The model folder: everything that predictions need, and no training data.

====================  =============================================================================
``model.safetensors``  the weights
``config.yaml``        the resolved config, without paths of the machine it was trained on
``model.json``         ``format_version`` and :class:`~graphgps_pearl.inference.facts.ModelFacts`
``README.md``          the model card, for people
====================  =============================================================================

A folder is written beside its place and renamed, so it is whole or absent. Nothing in it can run code.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from yacs.config import CfgNode

from graphgps_pearl import config, networks
from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.model import Model

FORMAT_VERSION = 1
#: Keys that say where things were on the training machine; a model folder has their defaults.
_PLACES = ("out_dir", "dataset.dir", "accelerator", "devices", "num_workers", "num_threads")
_MOST_BYTES = 10_000_000


def is_model_folder(path: Path) -> bool:
    """Whether a folder claims to be a model."""
    return (path / "model.json").is_file()


def write_model(model: Model, folder: Path, *, overwrite: bool = False, notes: str = "") -> None:
    """Write a model folder; ``notes`` go to the limits in its card."""
    if folder.exists() and not (overwrite and is_model_folder(folder)):
        can = "give --overwrite to replace it" if is_model_folder(folder) else "choose another name"
        raise DataError(f"{folder}: exists already; {can}")
    weights = {name: value.detach().cpu().clone().contiguous() for name, value in state_of(model.network)}
    description = {"format_version": FORMAT_VERSION, **model.facts.to_json()}
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        save_file(weights, temporary / "model.safetensors", metadata={"format": "pt"})
        (temporary / "model.safetensors").chmod(0o644)  # it comes private to its owner
        (temporary / "config.yaml").write_text(config.dump(without_places(model.cfg)))
        (temporary / "model.json").write_text(json.dumps(description, indent=2, ensure_ascii=False) + "\n")
        (temporary / "README.md").write_text(write_card(model.cfg, model.facts, notes))
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def read_model(folder: Path, device: str | torch.device = "cpu") -> Model:
    """Read a model folder."""
    facts = read_facts(folder / "model.json")
    cfg = config.load(folder / "config.yaml")
    file = folder / "model.safetensors"
    try:
        weights = load_file(file)
    except (OSError, SafetensorError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else str(error).splitlines()[0]
        raise DataError(f"{file}: cannot be read ({reason}); get the model again") from error
    return Model(cfg, facts, build_network(cfg, facts, weights, str(file)), device)


def read_facts(file: Path) -> ModelFacts:
    """``model.json``, refused if its format is another one than this version writes."""
    try:
        with file.open("rb") as stream:
            content = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{file}: cannot be read ({str(error).splitlines()[0]}); get the model again"
        ) from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if version != FORMAT_VERSION:
        raise DataError(
            f"{file}: format_version is {version!r}, this graphgps_pearl reads {FORMAT_VERSION}; "
            "use the version that wrote it, or export the model again"
        )
    return ModelFacts.from_json(content, str(file))


def build_network(cfg: CfgNode, facts: ModelFacts, weights: Mapping[str, Tensor], where: str) -> nn.Module:
    """The config's network with these weights, all of them and no others."""
    network = networks.build(cfg, facts.dim_in, facts.dim_out)
    try:
        network.load_state_dict(dict(weights))
    except RuntimeError as error:
        found, wanted = set(weights), {name for name, _ in state_of(network)}
        differing = sorted(found ^ wanted)
        what = f"{differing[0]} and {len(differing) - 1} more" if differing else str(error).splitlines()[-1]
        raise DataError(
            f"{where}: the weights are not those of the config beside it ({what.strip()})"
        ) from None
    return network


def state_of(network: nn.Module) -> list[tuple[str, Tensor]]:
    """Weights and running statistics by name."""
    return list(network.state_dict().items())


def without_places(cfg: CfgNode) -> CfgNode:
    """The config as another machine can use it; of the data's file, its name remains."""
    words = [word for key in _PLACES for word in (key, config.SCHEMA[key].default)]
    return config.override(cfg, [*words, "dataset.path", Path(cfg.dataset.path).name])
