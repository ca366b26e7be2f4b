"""Node tasks from the config to the result: over many graphs, and on the nodes of one graph."""

import json
from pathlib import Path

import pytest
import torch
from helpers.public_files import write_geom_gcn, write_gnn_benchmark
from sklearn.metrics import f1_score, recall_score

from graphgps_pearl import config
from graphgps_pearl.registry import register
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.metrics import EpochMetrics, compute_metrics
from graphgps_pearl.training.run import run

INDUCTIVE = """
metric_best: accuracy-SBM
dataset:
  {format: PyG-GNNBenchmarkDataset, name: PATTERN, task: graph, task_type: classification,
   transductive: False, check_totals: False, node_encoder: True, node_encoder_name: LinearNode+RPEARL}
posenc_RPEARL: {dim_pe: 8, hidden_dim: 8, num_layers: 2, num_samples: 4}
model: {type: GPSModel, loss_fun: weighted_cross_entropy}
gt: {layer_type: GIN+Transformer, layers: 2, n_heads: 2, dim_hidden: 16}
gnn: {head: inductive_node, layers_post_mp: 2, dim_inner: 16}
train: {batch_size: 8, eval_period: 4}
optim: {optimizer: adamW, base_lr: 0.01, max_epoch: 8, scheduler: none}
"""

TRANSDUCTIVE = """
metric_best: accuracy
dataset:
  {format: PyG-WebKB, name: cornell, task: node, task_type: classification, split_index: 3,
   check_totals: False, node_encoder: True, node_encoder_name: LinearNode, node_encoder_bn: False}
model: {type: GPSModel, loss_fun: cross_entropy}
gt: {layer_type: GCN+None, layers: 2, n_heads: 2, dim_hidden: 16, dropout: 0.2}
gnn: {head: node, layers_post_mp: 1, dim_inner: 16}
train: {eval_period: 10}
optim: {optimizer: adamW, base_lr: 0.02, max_epoch: 20, scheduler: none}
"""


def best_of(text: str, tmp_path: Path) -> dict[str, float]:
    register()
    places = ["dataset.dir", str(tmp_path / "data"), "dataset.path", str(tmp_path)]
    folder = RunFolder(tmp_path / "results" / "small" / "0")
    run(config.parse(text, places), folder)
    return json.loads(folder.result.read_text())["best"]


def test_an_inductive_task_learns(tmp_path: Path) -> None:
    write_gnn_benchmark(tmp_path, "PATTERN", (48, 8, 8))
    best = best_of(INDUCTIVE, tmp_path)
    assert best["test_accuracy-SBM"] > 0.8
    assert best["test_auc"] > 0.9


def test_a_transductive_task_learns_from_its_training_nodes(tmp_path: Path) -> None:
    write_geom_gcn(tmp_path, "cornell", 1703)
    best = best_of(TRANSDUCTIVE, tmp_path)
    assert best["test_accuracy"] > 0.7
    assert best["train_loss"] < 0.5


def test_a_transductive_task_learns_from_neighbourhoods_with_samples_by_node(tmp_path: Path) -> None:
    write_geom_gcn(tmp_path, "cornell", 1703, nodes=150)
    text = TRANSDUCTIVE.replace("GCN+None", "GCN+Transformer").replace(
        "name: LinearNode,", "name: LinearNode+RPEARL,"
    )
    text = text.replace("split_index: 3", "split_index: 3, subgraph_hops: 2, subgraph_neighbors: 4")
    text += "posenc_RPEARL: {dim_pe: 4, hidden_dim: 4, num_layers: 1, num_samples: 2}\n"
    best = best_of(
        text.replace("eval_period: 10", "eval_period: 5").replace("max_epoch: 20", "max_epoch: 5"), tmp_path
    )
    assert best["test_accuracy"] > 0.6


@pytest.mark.parametrize("hops", [0, 2])
def test_a_transductive_task_learns_from_parts_of_its_graph(tmp_path: Path, hops: int) -> None:
    write_geom_gcn(tmp_path, "cornell", 1703, nodes=150)
    text = TRANSDUCTIVE.replace("split_index: 3", f"split_index: 3, subgraph_hops: {hops}, subgraph_parts: 4")
    best = best_of(text, tmp_path)
    assert best["test_accuracy"] > 0.7 and best["train_loss"] < 0.5


def test_weighted_cross_entropy_is_that_of_graphgps() -> None:
    torch.manual_seed(0)
    pred, true = torch.randn(12, 4), torch.tensor([0] * 6 + [1] * 4 + [3] * 2)
    weight = torch.tensor([6 / 12, 8 / 12, 0.0, 10 / 12])
    terms = -pred.log_softmax(dim=1)[torch.arange(12), true] * weight[true]
    loss = make_loss("weighted_cross_entropy", "classification")
    assert torch.isclose(loss(pred, true), terms.sum() / weight[true].sum())
    unlabelled = torch.cat((true, torch.tensor([-1, -1])))
    assert torch.isclose(loss(torch.cat((pred, torch.randn(2, 4))), unlabelled), loss(pred, true))
    assert loss(pred[:3], true[:3]).isfinite()  # one class alone


def test_weighted_cross_entropy_of_one_logit() -> None:
    pred = torch.tensor([[0.3], [-1.0], [2.0], [0.5]], requires_grad=True)
    true = torch.tensor([[1.0], [0.0], [0.0], [float("nan")]])
    terms = torch.nn.functional.binary_cross_entropy_with_logits(pred[:3], true[:3], reduction="none")
    expected = (terms.flatten() * torch.tensor([2 / 3, 1 / 3, 1 / 3])).mean()
    loss = make_loss("weighted_cross_entropy", "classification_binary")(pred, true)
    loss.backward()
    assert torch.isclose(loss, expected)
    assert pred.grad is not None and pred.grad.isfinite().all() and pred.grad[3] == 0


@pytest.mark.parametrize("as_logits", [True, False])
def test_metrics_of_nodes_are_sklearns_over_the_labelled_ones(as_logits: bool) -> None:
    torch.manual_seed(0)
    pred, true = torch.randn(200, 5), torch.randint(-1, 3, (200,))
    known = true >= 0
    metrics = EpochMetrics("classification", None, {"one": lambda *_: 1.0} if as_logits else None, "node")
    for part in range(0, 200, 40):
        metrics.update(pred[part : part + 40], true[part : part + 40], torch.tensor(1.0))
    values, chosen = metrics.compute(), pred.argmax(dim=1)
    assert values["f1"] == pytest.approx(f1_score(true[known], chosen[known], average="macro"))
    expected = recall_score(true[known], chosen[known], average="macro", zero_division=0)
    assert values["accuracy-SBM"] == pytest.approx(expected)
    assert values["accuracy"] == pytest.approx(float((true == chosen)[known].float().mean()))
    assert int(metrics.count) == int(known.sum())


def test_graph_tasks_have_no_metrics_of_nodes() -> None:
    assert "accuracy-SBM" not in compute_metrics(
        torch.randn(4, 3), torch.tensor([0, 1, 2, 0]), "classification"
    )
