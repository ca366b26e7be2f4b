"""The model folder: everything that predictions need, and no training data.

====================  =============================================================================
``model.safetensors``  the weights
``config.yaml``        the resolved config, without paths of the machine it was trained on
``model.json``         ``format_version``, :class:`~graphgps_pearl.inference.facts.ModelFacts`, and a
                       SHA-256 of every file (``files``) and of its own values (``sha256``)
``README.md``          the model card, for people
====================  =============================================================================

A folder is written under another name and renamed, so it is whole or absent. Nothing in it can run code, and
nothing is read of a file that is not the one exported; an edited card is only mentioned.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from yacs.config import CfgNode

from graphgps_pearl import config, networks
from graphgps_pearl.data.base import first_line
from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.model import Model
from graphgps_pearl.runs.folder import flatten

log = logging.getLogger(__name__)

FORMAT_VERSION = 2
WEIGHTS, CONFIG, DESCRIPTION, CARD = "model.safetensors", "config.yaml", "model.json", "README.md"
#: Keys that say where things were on the training machine; a model folder has their defaults.
_OF_THIS_MACHINE = ("out_dir", "dataset.dir", "accelerator", "devices", "num_workers", "num_threads")
_MOST_BYTES = 10_000_000


def is_model_folder(path: Path) -> bool:
    """Whether a folder claims to be a model."""
    return (path / DESCRIPTION).is_file()


def write_model(model: Model, folder: Path, *, overwrite: bool = False, notes: str = "") -> None:
    """Write a model folder; ``notes`` go to the limits in its card."""
    if folder.exists() and not (overwrite and is_model_folder(folder)):
        can = "give --overwrite to replace it" if is_model_folder(folder) else "choose another name"
        raise DataError(f"{folder}: exists already; {can}")
    weights = {name: value.detach().cpu().clone().contiguous() for name, value in state_of(model.network)}
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        temporary.mkdir(parents=True)
        save_file(weights, temporary / WEIGHTS, metadata={"format": "pt"})
        (temporary / WEIGHTS).chmod(0o644)  # it comes private to its owner
        (temporary / CONFIG).write_text(config.dump(without_places(model.cfg)), encoding="utf-8")
        (temporary / CARD).write_text(write_card(model.cfg, model.facts, notes), encoding="utf-8")
        write_description(model.facts, temporary)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or first_line(error)
        raise DataError(f"{folder}: cannot be written ({reason})") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_description(facts: ModelFacts, folder: Path) -> None:
    """Write ``model.json`` with the checksums of the folder's other files."""
    sums = {name: _sha256(folder / name) for name in (WEIGHTS, CONFIG, CARD)}
    content = {"format_version": FORMAT_VERSION, **facts.to_json(), "files": sums}
    content["sha256"] = _sha256_of(content)
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def read_model(folder: Path, device: str | torch.device = "cpu") -> Model:
    """Read a model folder, whose files must be those that were exported."""
    facts = read_facts(folder)
    cfg = config.load(folder / CONFIG)
    file = folder / WEIGHTS
    try:
        weights = load_file(file)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{file}: cannot be read ({first_line(error)}); get the model again") from error
    return Model(cfg, facts, build_network(cfg, facts, weights, str(file)), device)


def read_facts(folder: Path) -> ModelFacts:
    """``model.json`` of a folder, whose checksums must be those of the other files."""
    file = folder / DESCRIPTION
    content = _read_description(file)
    sums = content.pop("files", None)
    if not isinstance(sums, dict):
        raise DataError(f"{file}: has no checksums of the model's files; export the model again")
    for name in (CONFIG, WEIGHTS, CARD):
        if not (folder / name).is_file():  # a FIFO in its place would wait for ever
            if name == CARD:
                continue
            raise DataError(f"{folder / name}: is missing, or not a file; get the model again")
        if _sha256(folder / name) == sums.get(name):
            continue
        if name != CARD:
            raise DataError(
                f"{folder / name}: is damaged or changed (its checksum differs); get the model again"
            )
        log.warning("%s is not the one that was exported", folder / name)
    return ModelFacts.from_json(content, str(file))


def _read_description(file: Path) -> dict[str, Any]:
    """``model.json``, refused if it is damaged or its format is another one than this version writes."""
    try:
        with file.open("rb") as stream:
            content = json.loads(stream.read(_MOST_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read ({first_line(error)}); get the model again") from error
    version = content.get("format_version") if isinstance(content, dict) else None
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DataError(
            f"{file}: format_version is {str(version)[:60]!r}, this graphgps_pearl reads {FORMAT_VERSION}; "
            "use the version that wrote it, or export the model again"
        )
    known = content.pop("sha256", None)
    if _sha256_of(content) != known:
        raise DataError(f"{file}: is damaged or changed (its checksum differs); get the model again")
    return dict(content)


def _sha256(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror}); get the model again") from error


def _sha256_of(content: dict[str, Any]) -> str:
    """Of the values, however the file is laid out."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


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
