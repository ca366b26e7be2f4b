"""Edge tasks: pairs without an edge, ranks, metrics, and a run."""

import json
from pathlib import Path

import pytest
import torch
from helpers.public_files import write_contacts
from torch_geometric.data import Batch, Data

from graphgps_pearl import config
from graphgps_pearl.negatives import with_negatives
from graphgps_pearl.networks import EdgeHead
from graphgps_pearl.registry import register
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.metrics import compute_metrics
from graphgps_pearl.training.run import run

CONFIG = """
metric_best: mrr
dataset:
  {format: OGB, name: PCQM4Mv2Contact-shuffle, task: graph, task_type: classification, resample_negative:
  True,
   check_totals: False, node_encoder: True, node_encoder_name: Atom, edge_encoder: True, edge_encoder_name:
   Bond}
model: {type: custom_gnn, loss_fun: cross_entropy, edge_decoding: dot}
gnn: {head: inductive_edge, layer_type: gineconv, layers_mp: 2, layers_post_mp: 1, dim_inner: 16}
train: {batch_size: 4, eval_period: 5}
optim: {optimizer: adamW, base_lr: 0.01, max_epoch: 10, scheduler: none}
"""


def batch_of(*sizes: int) -> Batch:
    torch.manual_seed(0)
    graphs = []
    for nodes in sizes:
        pairs = torch.tensor([[0, 1, 0, 2], [2, 3, 3, 1]])
        label = torch.tensor([1.0, 1.0, 0.0, 0.0])
        edges = torch.zeros(2, 0, dtype=torch.long)
        x = torch.randn(nodes, 3)
        graphs.append(Data(x=x, edge_index=edges, edge_index_labeled=pairs, edge_label=label))
    return Batch.from_data_list(graphs)


def test_ranks_are_those_of_sorting_each_graphs_scores() -> None:
    batch = batch_of(5, 9, 4)
    pred, true = EdgeHead(torch.nn.Identity()).eval()(batch)
    reciprocal = []
    for graph in batch.to_data_list():
        scores = graph.x @ graph.x.t()
        values = []
        for i, j in graph.edge_index_labeled[:, :2].t().tolist():
            order = scores[i].argsort(descending=True).tolist()
            values.append(1 / (1 + order.index(j)))
        reciprocal.append(sum(values) / len(values))
    values = compute_metrics(pred, true, "classification_binary", "edge")
    assert values["mrr"] == pytest.approx(sum(reciprocal) / len(reciprocal))
    assert values["hits@10"] == 1.0
    assert torch.allclose(pred[:4, 0], (batch[0].x[[0, 1, 0, 2]] * batch[0].x[[2, 3, 3, 1]]).sum(dim=1))


def test_ranks_are_exact_in_mixed_precision() -> None:
    """bfloat16 counts to 256 and no further."""
    batch = batch_of(3000)
    head = EdgeHead(torch.nn.Identity()).eval()
    batch.x = batch.x.bfloat16()
    found, _ = head(batch)
    batch.x = batch.x.float()
    expected, _ = head(batch)
    assert found.dtype == torch.float32
    assert torch.equal(found, expected) and found[:, 1].max() > 256


def test_drawn_pairs_stay_in_their_graph_and_are_no_edges() -> None:
    batch = batch_of(5, 9, 4)
    sizes = torch.bincount(batch.batch)
    edges = batch.edge_index_labeled[:, batch.edge_label > 0.5]
    seen = set()
    for seed in range(20):
        pairs, label = with_negatives(edges, batch.batch, sizes, torch.Generator().manual_seed(seed))
        drawn = pairs[:, label < 0.5]
        assert torch.equal(pairs[:, label > 0.5], edges)
        assert torch.equal(batch.batch[drawn[0]], batch.batch[drawn[1]])
        keys = {tuple(pair) for pair in drawn.t().tolist()}
        assert len(keys) == drawn.size(1) == 2 * edges.size(1)
        assert not keys & {tuple(pair) for pair in edges.t().tolist()}
        seen |= keys
    assert len(seen) > 20  # others each time


def test_a_node_with_edges_to_all_others_gets_fewer() -> None:
    edges = torch.tensor([[0, 0, 0], [0, 1, 2]])
    pairs, label = with_negatives(edges, torch.zeros(3, dtype=torch.long), torch.tensor([3]))
    assert pairs.size(1) == 3 and label.all()


def test_an_edge_task_learns(tmp_path: Path) -> None:
    write_contacts(tmp_path, (7, 7, 7))
    register()
    places = ["dataset.dir", str(tmp_path / "data"), "dataset.path", str(tmp_path)]
    folder = RunFolder(tmp_path / "results" / "small" / "0")
    run(config.parse(CONFIG, places), folder)
    rows = folder.read_metrics()
    assert float(rows[-1]["train_mrr"]) > float(rows[0]["train_mrr"]) + 0.1
    best = json.loads(folder.result.read_text())["best"]
    assert {"test_mrr", "test_hits@1", "test_auc"} <= best.keys()
