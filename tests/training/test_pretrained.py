"""Start from the weights of a run or a model, log to Weights & Biases, predict for graphs."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.public_files import write_contacts, write_gnn_benchmark, write_zinc
from torch_geometric.data import Data

from graphgps_pearl import config, data, encoders
from graphgps_pearl.errors import ConfigError, DataError
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.describe import describe_model
from graphgps_pearl.inference.folder import write_model
from graphgps_pearl.inference.loading import load
from graphgps_pearl.registry import register
from graphgps_pearl.runs.folder import RunFolder
from graphgps_pearl.training.run import prepare, run

ZINC = """
metric_best: mae
metric_agg: argmin
dataset:
  {format: PyG-ZINC, name: subset, task: graph, task_type: regression, check_totals: False, node_encoder:
  True,
   node_encoder_name: TypeDictNode+RPEARL+RWSE, node_encoder_num_types: 28, edge_encoder: True,
   edge_encoder_name: TypeDictEdge, edge_encoder_num_types: 4}
posenc_RPEARL: {dim_pe: 4, hidden_dim: 4, num_layers: 1, num_samples: 2}
posenc_RWSE: {dim_pe: 4, kernel: {times_func: "range(1,4)"}, model: Linear}
model: {type: GPSModel, loss_fun: l1}
gt: {layer_type: GINE+None, layers: 1, n_heads: 2, dim_hidden: 16}
gnn: {head: san_graph, dim_inner: 16}
train: {batch_size: 4, eval_period: 1}
optim: {optimizer: adamW, base_lr: 0.01, max_epoch: 2, scheduler: none}
"""
PATTERN = """
dataset: {format: PyG-GNNBenchmarkDataset, name: PATTERN, task: node, task_type: classification,
check_totals: False,
  node_encoder: True, node_encoder_name: LinearNode}
model: {type: GPSModel}
gt: {layer_type: GIN+None, layers: 1, n_heads: 2, dim_hidden: 8}
gnn: {dim_inner: 8}
optim: {max_epoch: 1, scheduler: none}
"""
CONTACT = """
dataset: {format: OGB, name: PCQM4Mv2Contact-shuffle, task: edge, task_type: classification, check_totals:
False,
  node_encoder: True, node_encoder_name: Atom}
model: {type: GPSModel}
gt: {layer_type: GIN+None, layers: 1, n_heads: 2, dim_hidden: 8}
gnn: {dim_inner: 8, head: inductive_edge}
optim: {max_epoch: 1, scheduler: none}
"""


@pytest.fixture(scope="module")
def zinc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small run on ZINC's files."""
    folder = tmp_path_factory.mktemp("zinc")
    write_zinc(folder / "raw", {"train": 8, "val": 4, "test": 4})
    train(ZINC, folder)
    return folder


def read(text: str, folder: Path, *words: str):
    register()
    return config.parse(text, ["dataset.dir", str(folder / "data"), "dataset.path", str(folder), *words])


def train(text: str, folder: Path, *words: str, tag: str = "run") -> Path:
    place = folder / "results" / tag / "0"
    run(read(text, folder, *words), RunFolder(place))
    return place


def test_a_new_head_on_trained_layers(zinc: Path) -> None:
    trained = load(zinc / "results" / "run" / "0", "cpu").network.state_dict()
    words = ("pretrained.dir", str(zinc / "results" / "run"), "seed", "3")
    network, *_ = prepare(read(ZINC, zinc, *words))
    for name, value in network.state_dict().items():
        assert torch.equal(value, trained[name]) != name.startswith("post_mp."), name
    network, *_ = prepare(read(ZINC, zinc, *words, "pretrained.reset_prediction_head", "False"))
    assert all(torch.equal(value, trained[name]) for name, value in network.state_dict().items())


def test_a_model_folder_is_a_start_too(zinc: Path, tmp_path: Path) -> None:
    trained = load(zinc / "results" / "run" / "0", "cpu")
    write_model(trained, tmp_path / "model")
    words = ("pretrained.dir", str(tmp_path / "model"), "pretrained.reset_prediction_head", "False")
    network, *_ = prepare(read(ZINC, zinc, *words))
    for name, value in trained.network.state_dict().items():
        assert torch.equal(value, network.state_dict()[name]), name
    weights = tmp_path / "model" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    with pytest.raises(DataError, match=r"model.safetensors: is damaged or changed"):
        prepare(read(ZINC, zinc, *words))


def test_a_shipped_model_goes_by_its_name() -> None:
    register()
    words = ["pretrained.dir", "wehi-logp", "pretrained.reset_prediction_head", "False"]
    cfg = config.load("wehi-logp-bpearl", [*words, "dataset.subset", "20"])
    network, *_ = prepare(cfg)
    shipped = load("wehi-logp", "cpu")
    assert all(torch.equal(v, network.state_dict()[n]) for n, v in shipped.network.state_dict().items())
    card = write_card(cfg, shipped.facts)
    assert "Training began with the weights of `wehi-logp`.\n" in card
    assert "Training began" not in write_card(shipped.cfg, shipped.facts)


def test_only_the_head_is_trained(zinc: Path) -> None:
    first = str(zinc / "results" / "run" / "0")
    words = ("pretrained.dir", first, "pretrained.freeze_main", "True", "optim.max_epoch", "1")
    run_folder = train(ZINC, zinc, *words, tag="frozen")
    before, after = load(first, "cpu").network, load(run_folder, "cpu").network
    for (name, old), new in zip(before.named_parameters(), after.parameters(), strict=True):
        assert torch.equal(old, new) or name.startswith("post_mp."), name
    assert not torch.equal(before.post_mp.mlp[0].weight, after.post_mp.mlp[0].weight)


def test_weights_of_another_network_are_refused(zinc: Path) -> None:
    place = str(zinc / "results" / "run")
    cfg = read(ZINC, zinc, "pretrained.dir", place, "gt.layer_type", "GINE+Transformer")
    with pytest.raises(ConfigError, match=r"pretrained.dir: .*no such weights.*attention.*config.yaml"):
        prepare(cfg)
    with pytest.raises(ConfigError, match=r"pretrained.dir: .*nowhere is neither a run.*zinc-bpearl\)"):
        prepare(read(ZINC, zinc, "pretrained.dir", str(zinc / "nowhere")))


def test_graphs_of_zinc_are_predicted_as_in_the_evaluation(zinc: Path) -> None:
    model = load(zinc / "results" / "run" / "0", "cpu")
    bundle = data.load(model.cfg, encoders.required_transforms(model.cfg))
    graphs = list(data.load(model.cfg).splits["test"])
    found = model.predict_graphs(graphs, tables=1, batch_size=3)
    assert [values.shape for values in found] == [(1,)] * len(graphs)
    error = np.mean([abs(v.item() - g.y.item()) for v, g in zip(found, graphs, strict=True)])
    assert error == pytest.approx(model.facts.metrics["test_mae"], abs=1e-5)
    assert len(bundle.splits["test"]) == len(graphs)


def test_graphs_unlike_those_of_the_training_are_refused(zinc: Path) -> None:
    model = load(zinc / "results" / "run" / "0", "cpu")
    edges = torch.tensor([[0, 1], [1, 0]])
    good = Data(x=torch.zeros(2, 1).long(), edge_index=edges, edge_attr=torch.ones(2).long())
    for graph, what in (
        (Data(x=torch.zeros(2, 3).long(), edge_index=edges), "x has 3 columns, not 1"),
        (Data(x=torch.zeros(2, 1).long(), edge_index=edges), "no edge_attr"),
        (Data(x=torch.zeros(2, 1).long(), edge_index=edges + 1, edge_attr=torch.ones(2)), "beyond the 2"),
    ):
        with pytest.raises(DataError, match=rf"graph 1: .*{what}"):
            model.predict_graphs([good, graph])


@pytest.mark.parametrize(("text", "write"), [(PATTERN, write_gnn_benchmark), (CONTACT, write_contacts)])
def test_nodes_and_pairs_are_predicted_graph_by_graph(tmp_path: Path, text: str, write) -> None:
    write(tmp_path, *(["PATTERN"] if write is write_gnn_benchmark else []))
    place = train(text, tmp_path)
    write_model(load(place, "cpu"), tmp_path / "model")
    model = load(tmp_path / "model", "cpu")
    card, task = (tmp_path / "model" / "README.md").read_text(), model.facts.task
    assert f"for each {task} from graphs" in card and "predict_graphs" in card and "SMILES" not in card
    assert ("accuracy-SBM" if task == "node" else "mrr") in card
    assert f"for each {task}" in describe_model(model)
    with pytest.raises(DataError, match=rf"predicts for the {task}s .*predict_graphs"):
        model.predict(["CCO"])
    graphs = list(data.load(load(place, "cpu").cfg).splits["train"])
    together = model.predict_graphs(graphs)
    for graph, values in zip(graphs, together, strict=True):
        rows = graph.num_nodes if text == PATTERN else graph.edge_index_labeled.size(1)
        assert values.shape == (rows, 1) and (values >= 0).all() and (values <= 1).all()
        assert np.allclose(model.predict_graphs([graph])[0], values, atol=1e-6)
    if task == "edge":  # else it would be a node of the next graph
        beyond = graphs[0].clone()
        beyond.edge_index_labeled = beyond.edge_index_labeled + beyond.num_nodes
        with pytest.raises(DataError, match="graph 1: edge_index_labeled names nodes beyond"):
            model.predict_graphs([graphs[1], beyond, graphs[1]])
        for pairs in (graphs[0].edge_index_labeled.t(), graphs[0].edge_index_labeled.float()):
            odd = graphs[0].clone()
            odd.edge_index_labeled = pairs.contiguous()
            with pytest.raises(
                DataError, match=r"graph 0: edge_index_labeled is .*, not integers \[2, pairs"
            ):
                model.predict_graphs([odd])


def test_without_wandb_a_line_says_so(zinc: Path, caplog, monkeypatch) -> None:
    from graphgps_pearl.training import wandb_log

    monkeypatch.setattr(wandb_log, "find_spec", lambda name: None)
    with caplog.at_level(logging.INFO, "graphgps_pearl"):
        train(ZINC, zinc, "wandb.use", "True", "optim.max_epoch", "1", tag="without")
    assert sum("wandb is not installed" in record.getMessage() for record in caplog.records) == 1


def test_wandb_gets_the_scalars_of_tensorboard(zinc: Path, monkeypatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    logged = []
    begin = wandb.init

    def init(**settings):
        made = begin(**settings)
        log = made.log
        monkeypatch.setattr(made, "log", lambda row, step: (logged.append((step, row)), log(row, step=step)))
        return made

    monkeypatch.setattr(wandb, "init", init)
    place = train(ZINC, zinc, "wandb.use", "True", tag="wandb")
    assert [step for step, _ in logged] == [0, 1]
    assert {"train/loss", "val/mae", "training/lr"} <= logged[0][1].keys()
    assert list((place / "wandb").glob("offline-run-*"))
