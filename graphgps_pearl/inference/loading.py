"""From what a user names to a model: a shipped name, a model folder, a run folder, a checkpoint, a config."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

import torch

from graphgps_pearl import config, data, networks
from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.inference.checkpoint import read_run
from graphgps_pearl.inference.facts import ModelFacts, units_of
from graphgps_pearl.inference.folder import read_model
from graphgps_pearl.inference.model import Model
from graphgps_pearl.runs.model_folder import find_model, is_config, shipped_names


def load(path: str | Path, device: str | torch.device | None = None) -> Model:
    """Load a trained model for use.

    Args:
        path: a model shipped with the package (``wehi-logp``, ``zinc-bpearl``, ``peptides-func-bpearl``,
            ``drugood-ec50-rpearl``), a model folder, a run folder such as ``results/quickstart/0``, or a
            checkpoint in one.
        device: ``cpu``, ``cuda``, ...; left out, a GPU if there is one.
    """
    chosen = choose_device(device)
    place = Path(path).expanduser()
    if is_config(place):
        raise DataError(
            f"{place}: is a config, which has no weights; train it first: graphgps-pearl train --cfg {place}"
        )
    if (model := find_model(path)) is not None:
        return read_model(model, chosen)
    if not place.exists():
        raise DataError(_unknown(str(path)))
    if place.is_file():
        return read_run(place, chosen)
    runs = sorted(f.parent.name for f in place.glob("*/config.yaml"))
    if not (place / "config.yaml").is_file() and runs:
        raise DataError(
            f"{place}: holds the runs {', '.join(runs)}; name one of them, such as {place / runs[0]}"
        )
    if not (place / "config.yaml").is_file():
        raise DataError(f"{place}: is neither a model folder (model.json) nor a run folder (config.yaml)")
    return read_run(place, chosen)


def untrained(path: str | Path, overrides: tuple[str, ...] = (), device: str | None = None) -> Model:
    """The model that a config describes, with the random weights it would start from."""
    from graphgps_pearl.training.losses import make_loss
    from graphgps_pearl.training.metrics import best_metric, custom_metrics

    cfg = config.load(path, overrides)
    spec = data.spec(cfg)
    if spec is None or spec.dim_in is None or spec.dim_out is None:
        raise DataError(
            f"{path}: the sizes of {cfg.dataset.name} are known only once it is read; train it first"
        )
    make_loss(cfg.model.loss_fun, spec.task_type, spec.task)
    custom = custom_metrics(cfg.custom_metrics)
    best_metric(cfg.metric_best, cfg.metric_agg, spec.task_type, tuple(custom), spec.task)
    facts = ModelFacts(
        name=Path(path).stem,
        dataset=spec.name,
        task_type=spec.task_type,
        task=spec.task,
        dim_in=spec.dim_in,
        edge_dim=spec.edge_dim or 0,
        dim_out=spec.dim_out,
        target_names=spec.target_names,
        target_units=units_of(spec.name, spec.target_names, in_units=False),  # no statistics are known
    )
    torch.manual_seed(cfg.seed)
    network = networks.build(cfg, facts.dim_in, facts.dim_out)
    return Model(cfg, facts, network, choose_device(device), trained=False)


def choose_device(device: str | torch.device | None) -> torch.device:
    """The device named, or a GPU if there is one."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UserError(f"device {str(device)!r} is not here ({str(error).splitlines()[0]})") from None
    if chosen.type == "meta":
        raise UserError("device 'meta' computes nothing; use cpu or cuda")
    return chosen


def _unknown(text: str) -> str:
    near = get_close_matches(text, shipped_names(), n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    return (
        f"{text}: no such model{hint} (expected one that is shipped ({', '.join(shipped_names())}), "
        "a model folder, a run folder such as results/quickstart/0, or a checkpoint in it)"
    )
