"""Start from the weights of another run: ``pretrained.dir``, with a new head and the rest frozen if asked
for."""

from __future__ import annotations

import logging
from pathlib import Path

from torch import Tensor, nn
from yacs.config import CfgNode

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.runs.checkpoints import trained_weights
from graphgps_pearl.runs.folder import RunFolder

log = logging.getLogger(__name__)

_HEAD, _NETWORK = "post_mp.", "network."


def start_from(network: nn.Module, cfg: CfgNode) -> None:
    """Load the best weights of the run in ``cfg.pretrained.dir`` into a network, in place.

    With ``reset_prediction_head`` the head keeps its random weights; with ``freeze_main`` nothing but the
    head is trained (batch norms still follow the data, as in GraphGPS).
    """
    folder = _find(Path(cfg.pretrained.dir).expanduser(), cfg.seed)
    content = trained_weights(folder).content["state_dict"]
    given: dict[str, Tensor] = {
        name.removeprefix(_NETWORK): value for name, value in content.items() if name.startswith(_NETWORK)
    }
    own = network.state_dict()
    wanted = [name for name in own if not (cfg.pretrained.reset_prediction_head and name.startswith(_HEAD))]
    for name in wanted:
        there = tuple(given[name].shape) if name in given else "no such weights"
        if there != tuple(own[name].shape):
            raise ConfigError(
                f"pretrained.dir: {folder.path} has {there} for {name}, this network has "
                f"{tuple(own[name].shape)}; take encoders, gt and gnn from {folder.config}"
                + (", or set pretrained.reset_prediction_head True" if name.startswith(_HEAD) else "")
            )
    network.load_state_dict({**own, **{name: given[name] for name in wanted}})
    if cfg.pretrained.freeze_main:
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(name.startswith(_HEAD))
    new = ", with a new head" if cfg.pretrained.reset_prediction_head else ""
    frozen = ", of which only the head is trained" if cfg.pretrained.freeze_main else ""
    log.info("starting from the weights of %s%s%s", folder.path, new, frozen)


def _find(place: Path, seed: int) -> RunFolder:
    """The run folder itself, or, of a folder of runs, the one of this seed or the first."""
    if (place / "config.yaml").is_file():
        return RunFolder(place)
    runs = sorted(file.parent for file in place.glob("*/config.yaml") if file.parent.name.isdigit())
    if not runs:
        raise ConfigError(
            f"pretrained.dir: {place} is no run folder of ours, such as results/zinc-bpearl/0 "
            "(GraphGPS's own checkpoints cannot be read)"
        )
    return RunFolder(next((run for run in runs if run.name == str(seed)), runs[0]))
