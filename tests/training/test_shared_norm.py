"""Batch norms over all processes: replaced in place, with the parameters they had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch_geometric.nn.norm import BatchNorm

from graphgps_pearl.training.shared_norm import SharedBatchNorm1d, share_norms


@pytest.fixture
def one_process(tmp_path: Path) -> Iterator[None]:
    """A group of one process: sums over all processes are its own."""
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/rendezvous", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def _network() -> nn.Sequential:
    torch.manual_seed(0)
    tied = nn.BatchNorm1d(4)
    parts = [nn.Linear(3, 4), tied, nn.Sequential(tied, nn.BatchNorm1d(4, affine=False))]
    return nn.Sequential(*parts, BatchNorm(4, allow_single_element=True)).double()


def test_names_and_tensors_stay() -> None:
    network = _network()
    before = dict(network.state_dict(keep_vars=True))
    share_norms(network)
    after = network.state_dict(keep_vars=True)
    assert list(after) == list(before)
    assert all(after[name] is value for name, value in before.items())
    assert isinstance(network[1], SharedBatchNorm1d)
    assert network[1] is network[2][0]
    assert isinstance(network[3].module, SharedBatchNorm1d)


@pytest.mark.usefixtures("one_process")
def test_one_process_is_the_plain_norm() -> None:
    plain, shared = _network(), _network()
    share_norms(shared)
    x = torch.randn(9, 3, dtype=torch.float64)
    for training in (True, False, True):
        results = []
        for network in (plain, shared):
            out = network.train(training)(x)
            grads = torch.autograd.grad(out.sin().sum(), list(network.parameters()))
            results.append((out, *grads, *network.buffers()))
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(a.double(), b.double(), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("one_process")
def test_a_single_row_is_normalised_by_the_running_statistics() -> None:
    network = nn.Sequential(BatchNorm(4, allow_single_element=True)).double()
    share_norms(network)
    row = torch.randn(1, 4, dtype=torch.float64)
    torch.testing.assert_close(network.train()(row), network.eval()(row))
    assert network[0].module.running_var.eq(1).all()


@pytest.mark.usefixtures("one_process")
def test_a_norm_exchanges_twice_and_once_in_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each exchange waits for the slowest process."""
    network = nn.Sequential(nn.BatchNorm1d(4))
    share_norms(network)
    sizes: list[int] = []
    monkeypatch.setattr(dist, "all_reduce", lambda x: sizes.append(x.numel()))
    network(torch.randn(9, 4)).square().sum().backward()
    assert sizes == [5, 4, 8]
