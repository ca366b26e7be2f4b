"""Runs of a second or less, with everything in them that is random, and what must be equal in equal runs."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from graphgps_pearl import config
from graphgps_pearl.command import run_command
from graphgps_pearl.registry import register
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.run import run

#: 12 training batches in three epochs; shuffling, dropout and R-PEARL's samples.
CONFIG = """
metric_best: mae
metric_agg: argmin
dataset:
  format: embedded
  name: wehi-logp
  subset: 50
  task: graph
  task_type: regression
  node_encoder: True
  node_encoder_name: Atom+RPEARL
  node_encoder_bn: False
  edge_encoder: True
  edge_encoder_name: Bond
  edge_encoder_bn: False
posenc_RPEARL: {dim_pe: 4, hidden_dim: 4, num_layers: 1, num_samples: 2}
train: {batch_size: 10, eval_period: 1, ckpt_every_seconds: 0}
model: {type: GPSModel, loss_fun: l1, graph_pooling: mean}
gt: {layer_type: GINE+Transformer, layers: 1, n_heads: 2, dim_hidden: 8, dropout: 0.1, attn_dropout: 0.1}
gnn: {head: san_graph, dim_inner: 8}
optim: {optimizer: adamW, base_lr: 0.002, max_epoch: 3, scheduler: none, clip_grad_norm: True}
"""


def train(config_file: Path, folder: Path, words: Sequence[str]) -> int:
    """One run, without the report that the command line adds; the exit code."""

    def work() -> None:
        register()
        run(config.load(config_file, words), RunFolder(folder))

    return run_command(work)


@dataclass(frozen=True)
class SmallRuns:
    """Starts small runs in this process."""

    folder: Path
    dataset_dir: Path

    def arguments(self, *words: str, tag: str = "run") -> tuple[Path, Path, list[str]]:
        """What :func:`train` takes."""
        file = self.folder / "small.yaml"
        if not file.exists():
            file.write_text(CONFIG)
        return file, self.path(tag), ["dataset.dir", str(self.dataset_dir), *words]

    def train(self, *words: str, tag: str = "run") -> int:
        """Train, or go on; the exit code."""
        return train(*self.arguments(*words, tag=tag))

    def path(self, tag: str = "run") -> Path:
        """A run's folder."""
        return self.folder / "results" / f"small-{tag}" / "0"


def numbers(run: Path) -> list[dict[str, str]]:
    """The rows of metrics.csv but for time and memory."""
    with (run / "metrics.csv").open(newline="") as file:
        return [
            {k: v for k, v in row.items() if k not in ("seconds", "memory_mb")}
            for row in csv.DictReader(file)
        ]


def checkpoint(run: Path, name: str = "last.ckpt") -> dict:
    """A checkpoint's content."""
    return torch.load(run / name, weights_only=True)


def result(run: Path) -> dict:
    """The result but for time and memory."""
    found = json.loads((run / "result.json").read_text())
    found["best"] = {k: v for k, v in found["best"].items() if k not in ("seconds", "memory_mb")}
    unequal = ("config", "prepare_seconds", "seconds_per_epoch", "memory_mb")
    return {k: v for k, v in found.items() if k not in unequal}


def assert_equal(a: object, b: object, where: str = "") -> None:
    """Equal nested values, tensors bit for bit."""
    if isinstance(a, torch.Tensor):
        assert isinstance(b, torch.Tensor) and torch.equal(a, b), where
    elif isinstance(a, dict):
        assert isinstance(b, dict) and a.keys() == b.keys(), where
        for key in a:
            assert_equal(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list | tuple):
        assert isinstance(b, list | tuple) and len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_equal(x, y, f"{where}[{i}]")
    else:
        assert a == b or (a != a and b != b), where


def assert_same_run(a: Path, b: Path) -> None:
    """Two finished runs with the same history, weights, optimiser state and best epoch, bit for bit."""
    assert numbers(a) == numbers(b)
    assert result(a) == result(b)
    for name in ("last.ckpt", "best.ckpt"):
        first, second = checkpoint(a, name), checkpoint(b, name)
        for key in ("epoch", "position", "state_dict", "optimizer_states", "plateau"):
            assert_equal(first.get(key), second.get(key), f"{name}: {key}")
