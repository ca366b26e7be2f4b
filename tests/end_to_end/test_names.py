"""ogbg-code2 from its files to a model that predicts: names, with Performer attention."""

import json
from pathlib import Path

import numpy as np
import torch
from helpers.public_files import write_ogb

import graphgps_pearl
from graphgps_pearl import cli, config, data

CONFIG = """
metric_best: f1
dataset:
  {format: OGB, name: ogbg-code2, task: graph, task_type: subtoken_prediction, check_totals: False,
   node_encoder: True, node_encoder_name: ASTNode, node_encoder_bn: False,
   edge_encoder: True, edge_encoder_name: ASTEdge, edge_encoder_bn: False}
model: {type: GPSModel, loss_fun: cross_entropy, graph_pooling: mean}
gt: {layer_type: CustomGatedGCN+Performer, layers: 1, n_heads: 2, dim_hidden: 16}
gnn: {head: ogb_code_graph, dim_inner: 16}
train: {batch_size: 8, eval_period: 4}
optim: {optimizer: adamW, base_lr: 0.02, max_epoch: 12, scheduler: none}
"""


def test_names_are_learned_and_predicted(tmp_path: Path) -> None:
    write_ogb(tmp_path, "ogbg-code2", 24)
    file = tmp_path / "names.yaml"
    file.write_text(CONFIG)
    words = ["dataset.path", tmp_path, "dataset.dir", tmp_path / "data", "out_dir", tmp_path / "out"]
    assert cli.main(["train", "--cfg", str(file), *map(str, words)]) == 0
    run = tmp_path / "out" / "names" / "0"
    with (run / "metrics.csv").open() as rows:
        names = rows.readline().strip().split(",")
        last = dict(zip(names, rows.readlines()[-1].strip().split(","), strict=True))
    assert float(last["train_f1"]) > 0.5 and float(last["train_loss"]) < 4
    best = json.loads((run / "result.json").read_text())["best"]
    assert {f"test_{name}" for name in ("f1", "precision", "recall")} <= best.keys()
    graphs = list(data.load(config.load(run / "config.yaml")).splits["test"])
    found = torch.tensor(np.stack(graphgps_pearl.load(run).predict_graphs(graphs)))
    assert found.shape == (len(graphs), 5 * 5002)
    assert torch.allclose(found.view(-1, 5, 5002).sum(dim=2), torch.ones(1, dtype=found.dtype))
