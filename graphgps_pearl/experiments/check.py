"""Everything that can be wrong with a run is found before the first of many is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from graphgps_pearl.errors import UserError
from graphgps_pearl.experiments.live import Selection
from graphgps_pearl.runs.folder import RunFolder, first_change, settings

if TYPE_CHECKING:
    from yacs.config import CfgNode

#: Keys that say which runs a command makes; of one run they change no number.
_OF_THE_COMMAND = frozenset({"name_tag", "run_multiple_splits"})


def check(cfg: CfgNode, *, budget: bool = True) -> Selection:
    """Raise what a training with this config would raise before its first epoch, short of preparing its data.

    The data files are found (and downloaded if they have to be), the encoders and the network are built, the
    loss and the metric are looked up, and the parameters are counted. Returns what the run is selected by.
    """
    from graphgps_pearl import data, encoders, networks
    from graphgps_pearl.registry import register
    from graphgps_pearl.training.losses import make_loss
    from graphgps_pearl.training.metrics import best_metric, custom_metrics
    from graphgps_pearl.training.run import require_budget

    register()
    known, spec = data.declared(cfg), data.spec(cfg)
    make_loss(cfg.model.loss_fun, known.task_type)
    custom = tuple(custom_metrics(cfg.custom_metrics))
    metric, larger_is_better = best_metric(
        cfg.metric_best, cfg.metric_agg, known.task_type, custom, known.task
    )
    encoders.required_transforms(cfg)
    if spec is None:  # what the network has to know of the data is only in the data
        spec = data.load(cfg).spec
    data.require_files(cfg)
    assert spec.dim_in is not None
    assert spec.dim_out is not None
    network = networks.build(cfg, spec.dim_in, spec.dim_out)
    require_budget(network, cfg.train.max_params if budget else 0)
    return Selection(f"{spec.select_split}_{metric}", larger_is_better)


def require_same(folder: Path, config_text: str) -> None:
    """A folder must not hold a run with other settings than ``optim.max_epoch``."""
    changed = _change(folder, config_text, frozenset({"optim.max_epoch"}))
    if changed:
        raise UserError(f"{folder} holds a run with {changed}: give name_tag NAME to keep both, or remove it")


def is_finished(texts: Mapping[Path, str]) -> bool:
    """Whether nothing is left to train in these folders, and what was trained has their settings."""
    return all(
        RunFolder(folder).read_result() and _change(folder, text, frozenset()) is None
        for folder, text in texts.items()
    )


def _change(folder: Path, config_text: str, ignored: frozenset[str]) -> str | None:
    run = RunFolder(folder)
    if not (run.result.exists() or run.last.exists()):
        return None
    try:
        old = settings(run.read(run.config))
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, OSError, UserError):
        return "a config.yaml that cannot be read"
    return first_change(old, settings(config_text), _OF_THE_COMMAND | ignored)
