"""Averaged weights and re-estimated batch norms: evaluated and saved as such, and never seen by training."""

import copy
import os
import signal
from types import SimpleNamespace

import pytest
import torch
from helpers.graphs import batch_of, molecule_like
from helpers.small_runs import assert_equal, assert_same_run, checkpoint, numbers
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_geometric.data import Batch, Data
from torch_geometric.nn.norm import BatchNorm

from graphgps_pearl import config, data, encoders, networks
from graphgps_pearl.errors import ConfigError, UserError
from graphgps_pearl.inference.checkpoint import read_run
from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.switches import use_kernels
from graphgps_pearl.training.evaluation_weights import Average, EvaluationWeights, reestimate
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.run import evaluation_weights
from graphgps_pearl.training.task import GraphTask, OptimSettings

EMA = ("train.ema_decay", "0.8")
NORMS = ("train.bn_reestimate", "20")
OPTIONS = [EMA, NORMS, (*EMA, *NORMS)]
MUON = ("optim.optimizer", "muon", "optim.momentum", "0.95")
KEPT = ("training_weights", "average")


@pytest.mark.parametrize("words", [*OPTIONS, MUON], ids="-".join)
@pytest.mark.parametrize(("method", "step"), [("training_step", 6), ("validation_step", 2)])
def test_interrupted_and_resumed_is_never_interrupted(runs, monkeypatch, words, method, step):
    runs.train(*words, tag="whole")
    original, count = getattr(GraphTask, method), [0]

    def counted(self, *args, **kwargs):
        count[0] += 1
        if count[0] == step:
            os.kill(os.getpid(), signal.SIGTERM)
        return original(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(GraphTask, method, counted)
        assert runs.train(*words) == 143
    assert runs.train(*words) == 0
    assert_same_run(runs.path(), runs.path("whole"))
    for key in KEPT:
        assert_equal(checkpoint(runs.path()).get(key), checkpoint(runs.path("whole")).get(key), key)


@pytest.mark.parametrize("words", OPTIONS, ids="-".join)
def test_training_is_the_same_with_and_without(runs, finished, words):
    assert runs.train(*words) == 0
    rows, plain = numbers(runs.path()), numbers(finished)
    for row, other in zip(rows, plain, strict=True):
        assert {k: v for k, v in row.items() if k.startswith(("train_", "grad"))} == {
            k: v for k, v in other.items() if k.startswith(("train_", "grad"))
        }
        assert row["val_mae"] != other["val_mae"]
    weights = {
        name.removeprefix("network."): value
        for name, value in checkpoint(finished)["state_dict"].items()
        if name.startswith("network.")
    }
    assert_equal(checkpoint(runs.path())["training_weights"], weights)


@pytest.mark.parametrize("words", OPTIONS, ids="-".join)
def test_the_saved_model_gives_the_recorded_error(runs, words):
    assert runs.train(*words) == 0
    model = read_run(runs.path())
    bundle = data.load(model.cfg, encoders.required_transforms(model.cfg))
    loader = data.make_loader(bundle.splits["val"], model.cfg, shuffle=False)
    with torch.no_grad():
        errors = torch.cat([torch.sub(*model.network.eval()(batch)).abs() for batch in loader])
    best = min(float(row["val_mae"]) for row in numbers(runs.path()))
    assert errors.mean().item() == pytest.approx(best, rel=1e-5)


def test_the_average_is_the_formulas(runs):
    """After one epoch of 4 steps: decays 1/10 (the first is a copy), 2/11, 3/12, all below 0.8."""
    seen = []

    def look(optimizer, *_):
        seen.append([p.detach().clone() for group in optimizer.param_groups for p in group["params"]])

    handle = register_optimizer_step_post_hook(look)
    assert runs.train(*EMA, "optim.max_epoch", "1") == 0
    handle.remove()
    expected = seen[0]
    for count, new in enumerate(seen[1:], start=1):
        decay = min(0.8, (1 + count) / (10 + count))
        expected = [decay * old + (1 - decay) * now for old, now in zip(expected, new, strict=True)]
    network = networks.build(config.load(runs.path() / "config.yaml"), 9, 1)
    saved = checkpoint(runs.path())["state_dict"]
    names = [name for name, _ in network.named_parameters()]
    for name, value in zip(names, expected, strict=True):
        torch.testing.assert_close(saved[f"network.{name}"], value, rtol=1e-5, atol=1e-6, msg=name)


class Tied(nn.Module):
    """A weight under two names, a norm that counts its batches, and a buffer that every pass replaces."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("last", torch.zeros(4, 3))
        self.register_buffer("nothing", None)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = self.norm(self.second(self.first(x)))
        return self.last


def test_the_average_is_torchs() -> None:
    torch.manual_seed(0)
    network = Tied()
    ours, theirs = Average(network, 0.999), AveragedModel(network, use_buffers=True)
    optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
    for step in range(6):
        network(torch.randn(4, 3)).square().sum().backward()
        optimizer.step()
        decay = min(0.999, (1 + step) / (10 + step))
        theirs.multi_avg_fn = lambda old, new, count, decay=decay: get_ema_multi_avg_fn(
            decay if old[0].is_floating_point() else 0.0
        )(old, new, count)
        ours.update()
        theirs.update_parameters(network)
        network.last = network.last.detach()
    assert int(ours.n_averaged) == 6
    assert_equal(ours.state_dict(), theirs.state_dict())
    assert ours.module.first.weight is ours.module.second.weight


def test_a_buffer_that_is_made_in_training_is_named() -> None:
    network = nn.Linear(2, 2)
    network.register_buffer("seen", None)
    average = Average(network, 0.9)
    network.seen = torch.zeros(1)
    with pytest.raises(UserError, match=r"train.ema_decay: .* has 3 parameters and buffers, and had 2"):
        average.update()


def test_whole_numbers_are_copied_and_not_averaged() -> None:
    """0.1 * 7 + 0.9 * 7 is just below 7, and would become 6."""
    network = torch.nn.Linear(2, 2)
    network.register_buffer("index", torch.arange(100))
    average = Average(network, 0.999)
    for _ in range(50):
        average.update()
    assert torch.equal(average.module.index, network.index)


@pytest.mark.parametrize("optimizer", ["adamW", "sgd"])
def test_a_step_that_the_loss_scaler_skips_does_not_count(optimizer) -> None:
    """A fused optimiser's step is called all the same, and finds out by itself that it is to be skipped."""
    settings = OptimSettings(optimizer=optimizer, base_lr=0.1)
    task = GraphTask(nn.Linear(2, 1), make_loss("l1", "regression"), "regression", [], settings)
    callback, trainer = (
        EvaluationWeights(decay=0.5),
        SimpleNamespace(optimizers=[task.configure_optimizers()]),
    )
    callback.on_fit_start(trainer, task)
    callback.on_train_start(trainer, task)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    counts = []
    for factor in (1.0, torch.inf, 1.0):
        scaler.scale(task.network(torch.ones(3, 2)).sum() * factor).backward()
        scaler.step(trainer.optimizers[0])
        scaler.update()
        trainer.optimizers[0].zero_grad()
        counts.append(int(callback.average.n_averaged))
    assert counts == [1, 1, 2]


class OfNodes(nn.Sequential):
    """Layers on the nodes of a batch."""

    def forward(self, batch):
        return super().forward(batch.x)


def test_reestimation_gives_the_statistics_of_the_evaluated_function():
    """Of all graphs, pooled: a last batch of few does not count as much as a whole one."""
    torch.manual_seed(0)
    network = OfNodes(nn.Dropout(0.5), nn.Linear(3, 4), BatchNorm(4, allow_single_element=True))
    network = network.double().train()
    for _ in range(5):
        network(Data(x=torch.randn(7, 3, dtype=torch.float64)))  # statistics of something else
    sizes = (50, 7)
    batches = [
        Batch.from_data_list([Data(x=torch.randn(4, 3).double() + size) for _ in range(size)])
        for size in sizes
    ]
    before, norm = torch.get_rng_state(), network[2].module
    reestimate(network, batches)
    assert torch.equal(torch.get_rng_state(), before)
    assert not network[2].training
    assert norm.momentum == 0.1
    hidden = torch.cat([network[1](batch.x) for batch in batches])
    torch.testing.assert_close(norm.running_mean, hidden.mean(dim=0), rtol=1e-10, atol=1e-12)
    # Within a batch the variance is the unbiased one, which makes a difference of 1 / rows.
    torch.testing.assert_close(norm.running_var, hidden.var(dim=0, correction=0), rtol=0.01, atol=0)


def test_reestimation_in_one_batch_evaluates_what_it_estimated():
    """After a norm over few graphs the next one sees values without their mean: its statistics are others."""
    torch.manual_seed(0)
    layers = [nn.Linear(3, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 3), nn.BatchNorm1d(3)]
    network = OfNodes(*layers).double()
    graphs = [Data(x=torch.randn(4, 3).double() + 3 * torch.randn(1, 3).double()) for _ in range(200)]
    deviations = []
    for size in (4, 200):
        reestimate(network, [Batch.from_data_list(graphs[i : i + size]) for i in range(0, 200, size)])
        out = network(Batch.from_data_list(graphs))
        deviations.append(max(out.mean(0).abs().max().item(), (out.std(0) - 1).abs().max().item()))
    assert deviations[0] > 0.02 and deviations[1] < 1e-3


@pytest.mark.parametrize("kind", [BPEARL, RPEARL])
@pytest.mark.parametrize("norm", ["batch", "graph"])
def test_reestimation_of_the_norms_of_phi(kind, norm):
    """Over the batch, or over each graph and then over the graphs; kernels and plain lines agree."""
    torch.manual_seed(0)
    pe = kind(3, hidden_dim=8, num_layers=1, num_taps=2, norm=norm).double()
    batch = batch_of(*((molecule_like(n, seed=n), n) for n in (5, 9, 12)))
    plain, seen = copy.deepcopy(pe), []
    first = plain.phi.layers[0].norm
    first.register_forward_pre_hook(lambda module, args: seen.append(args))
    with use_kernels(False):
        reestimate(plain, [batch])
    z, rows = seen[0]
    parts = [z] if norm == "batch" else [z[rows.graph == g] for g in range(3)]
    torch.testing.assert_close(first.running_mean, torch.stack([part.mean(0) for part in parts]).mean(0))
    torch.testing.assert_close(first.running_var, torch.stack([part.var(0) for part in parts]).mean(0))
    for native in (False, True):
        same = copy.deepcopy(pe)
        with use_kernels(True, native):
            reestimate(same, [batch])
        for found, expected in zip(same.buffers(), plain.buffers(), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["batch", "graph"])
def test_reestimation_in_double_precision_with_accumulation_and_pearl_norms(runs, norm):
    words = ("dataset.node_encoder_name", "Atom+BPEARL", "posenc_BPEARL.dim_pe", "4", "train.precision", "64")
    words = (*words, "posenc_BPEARL.hidden_dim", "4", "posenc_BPEARL.num_layers", "1")
    words = (*words, "posenc_BPEARL.norm", norm, "optim.batch_accumulation", "2", "train.eval_period", "2")
    assert runs.train(*words, *EMA, *NORMS) == 0
    content = checkpoint(runs.path())
    assert int(content["average"]["n_averaged"]) == 3 * 2  # optimiser steps, not batches
    assert all(value.isfinite().all() for value in content["state_dict"].values())


def test_fewer_graphs_than_processes_name_their_key(monkeypatch):
    cfg = config.load("configs/quickstart.yaml", NORMS)
    graphs = [Data(edge_index=molecule_like(n), num_nodes=n) for n in (5, 6, 7, 8)]
    bundle = SimpleNamespace(splits={"train": graphs})
    monkeypatch.setenv("WORLD_SIZE", "3")
    (weights,) = evaluation_weights(cfg, bundle, nn.Linear(1, 1))
    assert weights.batches is not None and [len(batch) for batch in weights.batches.sampler.batches()] == [2]
    cfg.train["bn_reestimate"] = 2
    with pytest.raises(ConfigError, match=r"train\.bn_reestimate = 2: .* 3 processes; .*at least 3, or to 0"):
        evaluation_weights(cfg, bundle, nn.Linear(1, 1))
