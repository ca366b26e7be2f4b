"""Start from the weights of a run or a model (``pretrained.dir``), if asked for with a new head and the rest
frozen."""

from __future__ import annotations

import logging
from pathlib import Path

from torch import Tensor, nn
from yacs.config import CfgNode

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.runs.checkpoints import network_weights, trained_weights
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.runs.model_folder import find_model, read_description, read_weights, shipped_names

log = logging.getLogger(__name__)

_HEAD = "post_mp."


def start_from(network: nn.Module, cfg: CfgNode) -> None:
    """Load the weights of what ``cfg.pretrained.dir`` names into a network, in place.

    With ``reset_prediction_head`` the head keeps its random weights; with ``freeze_main`` nothing but the
    head is trained (batch norms still follow the data, as in GraphGPS).
    """
    place, given = _find(cfg.pretrained.dir, cfg.seed)
    own = network.state_dict()
    wanted = [name for name in own if not (cfg.pretrained.reset_prediction_head and name.startswith(_HEAD))]
    for name in wanted:
        there = tuple(given[name].shape) if name in given else "no such weights"
        if there != tuple(own[name].shape):
            raise ConfigError(
                f"pretrained.dir: {place} has {there} for {name}, this network has "
                f"{tuple(own[name].shape)}; take encoders, gt and gnn from {place / 'config.yaml'}"
                + (", or set pretrained.reset_prediction_head True" if name.startswith(_HEAD) else "")
            )
    network.load_state_dict({**own, **{name: given[name] for name in wanted}})
    if cfg.pretrained.freeze_main:
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name.startswith(_HEAD))
    new = ", with a new head" if cfg.pretrained.reset_prediction_head else ""
    frozen = ", of which only the head is trained" if cfg.pretrained.freeze_main else ""
    log.info("starting from the weights of %s%s%s", place, new, frozen)


def _find(word: str, seed: int) -> tuple[Path, dict[str, Tensor]]:
    """A folder and its weights: of a model, a run, or, in a folder of runs, this seed's or the first."""
    if (model := find_model(word)) is not None:
        read_description(model)  # refuses a folder that is not as it was exported
        return model, read_weights(model)
    place = Path(word).expanduser()
    if not (place / "config.yaml").is_file():
        runs = sorted(file.parent for file in place.glob("*/config.yaml") if file.parent.name.isdigit())
        if not runs:
            raise ConfigError(
                f"pretrained.dir: {place} is neither a run folder, as results/zinc-bpearl/0, nor a model "
                f"folder or shipped model ({', '.join(shipped_names())}); GraphGPS's checkpoints are not read"
            )
        place = next((run for run in runs if run.name == str(seed)), runs[0])
    return place, network_weights(trained_weights(RunFolder(place)))
