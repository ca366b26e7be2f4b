"""Run folders and the checkpoints in them: the weights, the config beside them, the facts of their data."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from typing import Any

import torch
from yacs.config import CfgNode

from graphgps_pearl import config, data, encoders, networks
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import printable
from graphgps_pearl.inference.facts import ModelFacts, units_of
from graphgps_pearl.inference.folder import build_network
from graphgps_pearl.inference.model import Model
from graphgps_pearl.runs.checkpoints import network_weights, trained_weights, weights_of
from graphgps_pearl.runs.folder import RunFolder, data_facts

log = logging.getLogger(__name__)


def read_run(path: Path, device: str | torch.device = "cpu") -> Model:
    """The model of a run folder (its best epoch) or of one checkpoint in it."""
    folder = RunFolder(path if path.is_dir() else path.parent)
    found = trained_weights(folder) if path.is_dir() else weights_of(path)
    file = found.path
    if not folder.config.is_file():
        raise DataError(
            f"{file}: config.yaml is not in its folder; keep a checkpoint in its run folder, or export it"
        )
    cfg = config.load(folder.config)
    facts = dataclasses.replace(_facts(cfg, folder, found.metrics), chosen=found.chosen)
    network = build_network(cfg, facts, network_weights(found), str(file))
    facts = dataclasses.replace(facts, parameters=networks.count_parameters(network))
    return Model(cfg, facts, network, device)


def _facts(cfg: CfgNode, folder: RunFolder, metrics: dict[str, float]) -> ModelFacts:
    """From ``data.json``, or, where a run has none, from the data itself."""
    if folder.data.is_file():
        known = _read_json(folder, folder.data)
    else:
        log.info("%s has no data.json: reading the data for its target statistics", folder.path)
        bundle = data.load(cfg, encoders.required_transforms(cfg))
        known = data_facts(bundle)
    versions = folder.path / "versions.json"
    if not isinstance(known.get("name"), str) or not isinstance(known.get("target_names", ()), list | tuple):
        raise DataError(f"{folder.data}: is not what a run writes; delete it, then the data is read instead")
    names = _shown(known.get("target_names", ()))
    return ModelFacts.from_json(
        {
            **known,
            "name": folder.path.absolute().parent.name or folder.path.name,
            "dataset": known["name"],
            "target_names": names,
            "target_units": units_of(known["name"], names, known.get("target_mean") is not None),
            "class_names": _shown(known.get("class_names", ())),
            "metrics": metrics,
            "versions": _read_json(folder, versions) if versions.is_file() else {},
        },
        str(folder.data),
    )


def _shown(names: Any) -> Any:
    """Names of columns and classes without the line breaks and no-break spaces of spreadsheets."""
    if not isinstance(names, list | tuple):
        return names
    return [printable(" ".join(name.split())) if isinstance(name, str) else name for name in names]


def _read_json(folder: RunFolder, file: Path) -> dict[str, Any]:
    try:
        content = json.loads(folder.read(file))
    except ValueError as error:
        raise DataError(f"{file}: is damaged ({error}); delete it and try again") from error
    if not isinstance(content, dict):
        raise DataError(f"{file}: is damaged (it holds no names); delete it and try again")
    return content
