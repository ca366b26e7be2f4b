"""scripts/norm_shift.py: predictions with batch statistics and with fixed ones."""

import importlib

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data


class OnRows(nn.Sequential):
    """Prediction and target of every row."""

    def forward(self, batch):
        return super().forward(batch.x), batch.y


@pytest.fixture
def script(monkeypatch, request):
    monkeypatch.syspath_prepend(str(request.config.rootpath / "scripts"))
    return importlib.import_module("norm_shift")


def test_fixed_statistics_do_not_remove_the_mean_of_a_batch(script):
    """Two batches, around 1 and around 3, of a norm that knows mean 2 and variance 4."""
    network = OnRows(nn.BatchNorm1d(1, eps=1e-12)).double()
    network[0].running_mean.fill_(2.0)
    network[0].running_var.fill_(4.0)
    offsets = torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    zero = torch.zeros_like(offsets)
    batches = [Batch.from_data_list([Data(x=mean + offsets, y=zero, num_nodes=2)]) for mean in (1.0, 3.0)]
    for dropout in (False, True):  # there is none
        found = script.errors(network, batches, fixed=False, dropout=dropout)
        assert found.tolist() == pytest.approx([-1, 1, -1, 1])
        found = script.errors(network, batches, fixed=True, dropout=dropout)
        assert found.tolist() == pytest.approx([-1, 0, 0, 1])
    assert network[0].running_mean.item() == 2.0


def test_dropout_is_drawn_only_where_it_is_on(script):
    network = OnRows(nn.Dropout(0.5))
    batch = Batch.from_data_list([Data(x=torch.ones(64, 1), y=torch.zeros(64, 1), num_nodes=64)])
    assert set(script.errors(network, [batch], fixed=True, dropout=True).tolist()) == {0.0, 2.0}
    assert set(script.errors(network, [batch], fixed=False, dropout=False).tolist()) == {1.0}


def test_a_shipped_model(script, capsys):
    script.main(["wehi-logp", "--graphs", "100", "dataset.subset", "300"])
    title, header, *rows = capsys.readouterr().out.splitlines()
    assert title.startswith("wehi-logp: 128 training graphs") and header.split()[-1] == "median"
    assert [row.split()[:2] for row in rows] == [[a, b] for a in ("batch", "fixed") for b in ("on", "off")]
    assert all(0 < float(row.split()[2]) < 2 and abs(float(row.split()[3])) < 1 for row in rows)


def test_only_regressions_on_graphs(script, capsys):
    with pytest.raises(SystemExit):
        script.main(["peptides-func-bpearl"])
    assert "no regression on graphs" in capsys.readouterr().err
