"""``baseline`` fits ECFP counts with LightGBM on the splits of a config, with its metric.

What it leaves is a run folder like a network's, so that ``report`` and ``compare`` show it as one more row.
LightGBM's trees are those of Adamczyk et al. (2025): 500, with the absolute error for regression and balanced
classes for labels; nothing is tuned.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from yacs.config import CfgNode

from graphgps_pearl import config, data
from graphgps_pearl.command import run_command
from graphgps_pearl.data.fingerprints import Fingerprints
from graphgps_pearl.data.splits import NO_VALIDATION
from graphgps_pearl.errors import MissingExtraError, UserError
from graphgps_pearl.files import write_errors_in_one_line
from graphgps_pearl.report.aggregate import describe_run, write_aggregate
from graphgps_pearl.runs.folder import RunFolder, config_folder, data_facts, seed_and_fold
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.metrics import EpochMetrics, best_metric, metric_names
from graphgps_pearl.training.recorder import metric_columns, peak_memory_mb
from graphgps_pearl.training.run import automatic_threads

TREES = 500
Counts = NDArray[np.int32]


def baseline(argv: Sequence[str] | None = None, prog: str | None = None) -> int:
    """``baseline FILE [--with-validation] [--overwrite] [KEY VALUE ...]``."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Fit molecular fingerprints (ECFP counts) with LightGBM on the splits of a config.",
        epilog="Results go to <out_dir>/<config>-ecfp/<seed or fold>/ and stand in report as one more row.",
    )
    parser.add_argument("file", metavar="FILE", help="config file, or the name of a shipped one")
    parser.add_argument(
        "--with-validation",
        action="store_true",
        help="fit the model for the test split to training and validation data, as published (row -ecfp-all)",
    )
    parser.add_argument("--overwrite", action="store_true", help="fit a finished baseline again")
    parser.add_argument("overrides", nargs="*", metavar="KEY VALUE", help="config keys to set")
    args = parser.parse_intermixed_args(argv)

    def work() -> None:
        file = config.find(args.file)
        cfg = config.load(file, args.overrides)
        out_dir, kind = Path(cfg.out_dir), "ecfp-all" if args.with_validation else "ecfp"
        tag = f"{cfg.name_tag}-{kind}" if cfg.name_tag else kind  # compare looks for <its name>-ecfp
        target = config_folder(out_dir, file, tag)
        for name, run_cfg in config.runs(cfg):
            folder = RunFolder(target / str(name))
            text = config.dump(_described(run_cfg, kind))
            finished = None if args.overwrite or not folder.is_same(text) else folder.read_result()
            if finished is None:
                with write_errors_in_one_line(folder.path), folder.locked():
                    folder.open(text, overwrite=args.overwrite)
                    try:
                        finished = fit(run_cfg, folder, with_validation=args.with_validation)
                    finally:
                        folder.restore_replaced()
                write_aggregate(target)
            print(f"\n{describe_run(finished)}\n")
        print(f"results: {target}")

    return run_command(work)


def _described(cfg: CfgNode, kind: str) -> CfgNode:
    """The config with the fingerprint in place of an encoder: what tables show as the encoder."""
    described = cfg.clone()
    described.defrost()
    described.dataset.node_encoder_name = f"fingerprint+{kind.upper()}"
    return described


def fit(cfg: CfgNode, folder: RunFolder, *, with_validation: bool) -> dict[str, Any]:
    """Fit, evaluate on every split and write the run's files; its result."""
    known = data.declared(cfg)
    if known.task != "graph":
        raise UserError(f"dataset.task = {known.task}: the baseline predicts for molecules; it needs graph")
    if with_validation and cfg.dataset.split_mode.endswith(NO_VALIDATION):
        raise UserError(
            f"--with-validation: dataset.split_mode = {cfg.dataset.split_mode} has no validation data, only "
            "the test fold; leave --with-validation out"
        )
    metric, larger_is_better = best_metric(cfg.metric_best, cfg.metric_agg, known.task_type)
    bundle = data.load(cfg, view=Fingerprints())
    folder.write(folder.data, json.dumps(data_facts(bundle), indent=2) + "\n")
    began = time.perf_counter()
    splits = tuple(bundle.splits)
    counts = {split: _counts(graphs) for split, graphs in bundle.splits.items()}
    labels = {split: torch.cat([graph.y for graph in graphs]) for split, graphs in bundle.splits.items()}
    selection, threads = bundle.spec.select_split, cfg.num_threads or automatic_threads()
    models = _fitted(counts[splits[0]], labels[splits[0]], known.task_type, cfg.seed, threads)
    refitted = models
    if with_validation:
        both = np.concatenate((counts[splits[0]], counts[selection]))
        answers = torch.cat((labels[splits[0]], labels[selection]))
        refitted = _fitted(both, answers, known.task_type, cfg.seed, threads)
    row = {"epoch": 0.0}
    for split in splits:
        # A model that was fitted to the validation split says nothing there.
        chosen = models if split in (splits[0], selection) else refitted
        scores = EpochMetrics(known.task_type, bundle.moments)
        predictions = _scores(chosen, counts[split], known.task_type, bundle.spec.dim_out or 1)
        loss = make_loss(cfg.model.loss_fun, known.task_type)(predictions, labels[split])
        scores.update(predictions, labels[split], loss)
        row |= {f"{split}_{name}": value for name, value in scores.compute().items()}
    row |= {"seconds": time.perf_counter() - began, "memory_mb": peak_memory_mb()}
    folder.write_metrics(metric_columns(metric_names(known.task_type), splits), [row])
    result = {
        "config": folder.path.parent.name,
        **seed_and_fold(cfg),
        "splits": list(splits),
        "parameters": {"encoder": 0, "leaves": sum(_leaves(model) for model in refitted)},
        "prepare_seconds": bundle.prepare_seconds,
        "metric": f"{selection}_{metric}",
        "larger_is_better": larger_is_better,
        "best": row,
        "epochs": 1,
        "seconds_per_epoch": row["seconds"],
        "memory_mb": row["memory_mb"],
    }
    folder.write(folder.result, json.dumps(result, indent=2) + "\n")
    folder.forget_replaced()
    return result


def _counts(graphs: Any) -> Counts:
    return np.concatenate([graph.x.numpy() for graph in graphs])


def _fitted(counts: Counts, labels: Tensor, task_type: str, seed: int, threads: int) -> list[Any]:
    """A model for each target, fitted to the molecules that have a label; where that is always the same, the
    label itself, and None where there is none."""
    try:
        from lightgbm import LGBMClassifier, LGBMRegressor
    except ImportError as error:
        raise MissingExtraError(
            f"baseline needs a package that is not installed ({error.name}): pip install 'lightgbm>=4.6,<5'"
        ) from error

    settings = {"n_estimators": TREES, "random_state": seed, "n_jobs": threads, "verbose": -1}
    columns = labels.view(len(labels), -1).numpy()
    models: list[Any] = []
    for column in columns.T:
        known = column >= 0 if task_type == "classification" else ~np.isnan(column)
        distinct = np.unique(column[known])
        if len(distinct) < 2:
            models.append(float(distinct[0]) if len(distinct) else None)
        elif task_type == "regression":
            models.append(LGBMRegressor(objective="mae", **settings).fit(counts[known], column[known]))
        else:
            model = LGBMClassifier(is_unbalance=True, **settings)
            models.append(model.fit(counts[known], column[known].astype(int)))
    return models


def _scores(models: Sequence[Any], counts: Counts, task_type: str, dim_out: int) -> Tensor:
    """Predicted targets, or logits, [molecules, dim_out]; 0 where nothing is known."""
    if task_type == "classification":
        out = np.zeros((len(counts), dim_out))
        model = models[0]
        if isinstance(model, float):
            out[:, int(model)] = 1
        elif model is not None:
            scores = model.predict(counts, raw_score=True).reshape(len(counts), -1)
            if len(model.classes_) == 2:
                scores = np.concatenate((np.zeros_like(scores), scores), axis=1)
            out[:] = scores.min() - 1  # of classes that it was not fitted to
            out[:, model.classes_] = scores
        return torch.from_numpy(out).float()
    columns = [_predicted(model, counts, task_type) for model in models]
    return torch.from_numpy(np.stack(columns, axis=1)).float()


def _predicted(model: Any, counts: Counts, task_type: str) -> Any:
    if model is None:
        return np.zeros(len(counts))
    if isinstance(model, float):  # the only label: a value, or a logit on its side
        return np.full(len(counts), model if task_type == "regression" else 2 * model - 1)
    return model.predict(counts, **({} if task_type == "regression" else {"raw_score": True}))


def _leaves(model: Any) -> int:
    if model is None or isinstance(model, float):
        return 0
    return sum(tree["num_leaves"] for tree in model.booster_.dump_model()["tree_info"])
