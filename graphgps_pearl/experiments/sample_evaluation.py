"""One R-PEARL model evaluated with several numbers of samples; see the ``samples`` module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphgps_pearl import data, encoders
from graphgps_pearl.errors import UserError
from graphgps_pearl.inference.loading import load
from graphgps_pearl.inference.model import Model
from graphgps_pearl.report.pictures import encodings, predict
from graphgps_pearl.report.samples import Point
from graphgps_pearl.training.metrics import best_metric, compute_metrics, metric_names

_GRAPHS = 32  # whose encodings are compared
_REFERENCE = 8  # times the largest M
_CHUNK = 32  # samples at once, which bounds the memory and changes nothing in evaluation


def evaluate(
    path: Path, samples: Sequence[int], tables: int = 3, split: str | None = None
) -> tuple[str, list[Point]]:
    """The column's name (``test_mae``) and a point for every M and table."""
    model = load(path, "cpu")
    encoder = rpearl(path, model)
    cfg = model.cfg
    bundle = data.load(cfg, encoders.required_transforms(cfg))
    task_type, task = bundle.spec.task_type, bundle.spec.task
    splits = bundle.splits
    split = split or list(splits)[-1]
    if split not in splits:
        raise UserError(f"--split: there is no {split!r}; there are {', '.join(splits)}")
    metric = best_metric(cfg.metric_best, cfg.metric_agg, task_type, cfg.custom_metrics, task)[0]
    known = metric_names(task_type, task)
    metric = metric if metric in known else known[0]
    graphs = splits[split]
    some = list(graphs[: min(len(graphs), _GRAPHS)])
    seed = encoder.encoding.eval_seed
    with sampling(encoder.encoding, _REFERENCE * max(samples), seed + tables):
        reference = np.concatenate(encodings(encoder, some))
    points = []
    for count in samples:
        for table in range(tables):
            with sampling(encoder.encoding, count, seed + table):
                pred, true = predict(model.network, graphs, cfg.train.batch_size)
                error = np.concatenate(encodings(encoder, some)) - reference
            outputs, labels = (bundle.in_units(torch.from_numpy(values)) for values in (pred, true))
            value = compute_metrics(outputs, labels, task_type, task)[metric]
            relative = float(np.linalg.norm(error) / np.linalg.norm(reference))
            points.append(Point(count, table, value, relative))
    return f"{split}_{metric}", points


def rpearl(path: Path, model: Model) -> Any:
    """The model's R-PEARL encoder, if its encoding is one that does not grow with M."""
    encoder = model.positional_encoders().get("RPEARL")
    if encoder is None:
        raise UserError(f"{path}: has no R-PEARL; its node encoder is {model.cfg.dataset.node_encoder_name}")
    pool = model.cfg.posenc_RPEARL.pool
    if "sum" in pool.split("+"):
        raise UserError(f"{path}: posenc_RPEARL.pool = {pool}: a sum grows with M; train with mean")
    return encoder


@contextmanager
def sampling(module: Any, num_samples: int, eval_seed: int) -> Iterator[None]:
    """R-PEARL with another number of samples, from another table."""
    before = module.num_samples, module.eval_seed, module.chunk_size
    module.num_samples, module.eval_seed, module.chunk_size = num_samples, eval_seed, _CHUNK
    try:
        yield
    finally:
        module.num_samples, module.eval_seed, module.chunk_size = before
