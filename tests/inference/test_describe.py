"""``describe``: a model, or a config without its data."""

import pytest
from helpers.inference import CONFIGS, one_error

from graphgps_pearl import cli


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


def test_describe_says_when_the_budget_is_exceeded(capsys):
    words = ("--no-timing", "gt.dim_hidden", "128", "gnn.dim_inner", "128", "gt.layers", "10")
    assert cli.main(["describe", str(CONFIGS / "quickstart.yaml"), *words]) == 0
    assert "ABOVE THE BUDGET" in capsys.readouterr().out
    assert cli.main(["describe", str(CONFIGS / "quickstart.yaml"), "gt.layer", "3"]) == 2
    assert "gt.layers" in one_error(capsys)
