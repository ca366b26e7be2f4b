"""Runs on a small table of molecules, by the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from graphgps_pearl import cli

CONFIG = """
dataset:
  format: csv
  name: mine
  task: graph
  task_type: regression
  target_columns: [y]
  split_column: set
  node_encoder: True
  node_encoder_name: Atom
  node_encoder_bn: False
  edge_encoder: True
  edge_encoder_bn: False
train: {batch_size: 4, eval_period: 1}
model: {type: GPSModel, loss_fun: l1}
gt: {layer_type: GINE+None, layers: 1, n_heads: 2, dim_hidden: 8}
gnn: {head: san_graph, dim_inner: 8}
optim: {max_epoch: 1, scheduler: none}
num_threads: 1
"""
SETS = ["train"] * 8 + ["val"] * 2 + ["test"] * 2
Train = Callable[..., int]


def write_table(file: Path, values: list[object] | None = None, sets: list[str] = SETS) -> None:
    """A table of alkanes with a value and a split each."""
    values = list(range(12)) if values is None else values
    rows = [
        f"{'C' * (i + 2)},{value},{part}" for i, (value, part) in enumerate(zip(values, sets, strict=True))
    ]
    file.write_text("\n".join(["smiles,y,set", *rows]) + "\n")


def trainer(tmp_path: Path) -> Train:
    """Trains on a table of twelve molecules in a folder, by the command; the exit code."""
    write_table(tmp_path / "mine.csv")
    (tmp_path / "mine.yaml").write_text(CONFIG)

    def start(*words: object, options: tuple[str, ...] = ()) -> int:
        folders = ("out_dir", tmp_path / "results", "dataset.dir", tmp_path / "data")
        argv = ["--cfg", tmp_path / "mine.yaml", "dataset.path", tmp_path / "mine.csv", *folders, *words]
        return cli.train([*map(str, argv), *options])

    return start
