"""``describe``: a model, or a config without its data."""

import pytest
from helpers.inference import CONFIGS, one_error
from torch import nn

from graphgps_pearl import cli
from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.describe import stand_ins
from graphgps_pearl.inference.loading import untrained
from graphgps_pearl.vocabulary import NAME_LENGTH, NAME_WORDS


def test_describe_a_model(model, capsys):
    assert cli.main(["describe", str(model)]) == 0
    shown = capsys.readouterr().out
    for fact in ("csv", "atoms, rings", "BPEARL", "hidden_dim 8", "2 x GINE+Transformer", "test: loss"):
        assert fact in shown
    assert "ms of a forward pass" in shown
    assert "MB of activations" in shown


@pytest.mark.parametrize("name", ("zinc-rpearl", "peptides-lappe-8s", "drugood-spe"))
def test_describe_a_config_without_its_data(name, capsys):
    small = ("train.batch_size", "2", "posenc_RPEARL.num_samples", "4")
    assert cli.main(["describe", str(CONFIGS / f"{name}.yaml"), *small]) == 0
    shown = capsys.readouterr().out
    assert "untrained" in shown
    assert "of the budget of 500,000" in shown
    assert "2 molecules of" in shown
    if name == "zinc-rpearl":
        assert "pool mean+std" in shown and ", batch " not in shown  # a key without effect


def test_an_encoder_of_a_user_is_called_one(monkeypatch, capsys):
    from torch_geometric.graphgym.register import node_encoder_dict

    monkeypatch.setitem(node_encoder_dict, "Mine", lambda width: nn.Identity())
    words = ("--no-timing", "dataset.node_encoder_name", "Mine")
    assert cli.main(["describe", str(CONFIGS / "zinc-none.yaml"), *words]) == 0
    assert "Mine: an encoder of yours" in capsys.readouterr().out


def test_describe_says_when_the_budget_is_exceeded(capsys):
    words = ("--no-timing", "gt.dim_hidden", "128", "gnn.dim_inner", "128", "gt.layers", "10")
    assert cli.main(["describe", str(CONFIGS / "quickstart.yaml"), *words]) == 0
    assert "ABOVE THE BUDGET" in capsys.readouterr().out
    assert cli.main(["describe", str(CONFIGS / "quickstart.yaml"), "gt.layer", "3"]) == 2
    assert "gt.layers" in one_error(capsys)
    for words in (("model.loss_fun", "L1"), ("metric_best", "MAE")):  # as train refuses them
        assert cli.main(["describe", str(CONFIGS / "quickstart.yaml"), "--no-timing", *words]) == 2
        assert words[0] in one_error(capsys)


CODE2 = """
metric_best: f1
metric_agg: argmax
dataset:
  {format: OGB, name: ogbg-code2, task: graph, task_type: subtoken_prediction, node_encoder: true,
   node_encoder_name: ASTNode+RPEARL, node_encoder_bn: false, edge_encoder: true, edge_encoder_name: ASTEdge,
   edge_encoder_bn: false}
posenc_RPEARL: {dim_pe: 4, hidden_dim: 8, num_layers: 1, num_samples: 2}
train: {batch_size: 2}
model: {type: GPSModel, loss_fun: cross_entropy, graph_pooling: mean}
gt: {layer_type: GINE+Transformer, layers: 1, n_heads: 2, dim_hidden: 16}
gnn: {head: ogb_code_graph, dim_inner: 16}
"""


def test_a_model_of_names_is_described_and_predicts(tmp_path, capsys):
    (tmp_path / "code2.yaml").write_text(CODE2)
    assert cli.main(["describe", str(tmp_path / "code2.yaml")]) == 0
    shown = capsys.readouterr().out
    assert "ogbg-code2" in shown and "2 molecules of" in shown
    model = untrained(tmp_path / "code2.yaml")
    (probabilities,) = model.predict_graphs(stand_ins(model)[:1])
    assert probabilities.reshape(NAME_LENGTH, NAME_WORDS).sum(axis=1) == pytest.approx([1.0] * NAME_LENGTH)
    assert "subtoken_prediction" in write_card(model.cfg, model.facts)
    with pytest.raises(DataError, match=r"ogbg-code2.*not made from SMILES; predict_graphs"):
        model.predict(["CCO"])


def test_a_network_of_graphgym_that_writes_into_its_batch(capsys):
    words = (
        "model.type",
        "gnn",
        "gnn.head",
        "graph",
        "gnn.layer_type",
        "generalconv",
        "train.batch_size",
        "2",
    )
    file = str(CONFIGS / "quickstart.yaml")
    assert cli.main(["describe", file, *words, "dataset.node_encoder_name", "Atom"]) == 0
    assert "2 molecules of" in capsys.readouterr().out
