"""What is not a number never reaches the weights, metrics belong to a split and not to its batches."""

import math

import pytest
import torch
from helpers.small_runs import SmallRuns, assert_same_run, checkpoint, numbers

from graphgps_pearl import config, data
from graphgps_pearl.registry import register
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.run import prepare
from graphgps_pearl.training.task import GraphTask, OptimSettings

WORST = 3  # position in the batch of the graph that goes wrong


@pytest.fixture
def poison(monkeypatch):
    """From the 7th training step on, one graph's prediction, or the gradient, is not a number."""

    def arm(what: str) -> list[dict[str, torch.Tensor]]:
        original, weights = GraphTask.training_step, []

        def step(self, batch, batch_idx):
            weights.append({name: p.detach().clone() for name, p in self.network.named_parameters()})
            if len(weights) == 7:
                network, loss = self.network, self.loss
                bad = torch.full((len(batch.y), 1), 0.0)
                bad[WORST] = math.nan
                with monkeypatch.context() as patch:
                    if what == "loss":
                        patch.setattr(network, "forward", lambda b, f=network.forward: (f(b)[0] + bad, b.y))
                    else:  # the root of zero has an infinite slope, and zero times infinity is no number
                        patch.setattr(self, "loss", lambda p, t: loss(p, t) + 0 * (p * 0).sum().sqrt())
                    self.the_network = network
                    return original(self, batch, batch_idx)
            return original(self, batch, batch_idx)

        monkeypatch.setattr(GraphTask, "training_step", step)
        return weights

    return arm


@pytest.mark.parametrize("what", ["loss", "gradient"])
def test_a_number_that_is_none_stops_before_the_weights_and_names_the_graphs(
    runs, poison, capsys, monkeypatch, what
):
    tasks = []
    monkeypatch.setattr(GraphTask, "on_fit_start", lambda self: tasks.append(self), raising=False)
    weights = poison(what)
    assert runs.train() == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line.startswith(f"error: epoch 2, batch 3: the {what}")
    for name, parameter in tasks[0].network.named_parameters():
        assert torch.equal(parameter, weights[-1][name]), name
    loader = tasks[0].trainer.fit_loop._data_source.instance
    order = loader.sampler.batches()[2]
    expected = [order[WORST]] if what == "loss" else order[:8]
    assert f"training graphs {', '.join(map(str, expected))}" in line
    assert checkpoint(runs.path())["position"] == {"epoch": 1, "batches": 0}  # the last good one stays


def test_nan_is_never_best(tmp_path):
    from graphgps_pearl.runs.folder import RunFolder
    from graphgps_pearl.training.recorder import Recorder

    recorder = Recorder(RunFolder(tmp_path), [], "val_mae", larger_is_better=False)
    assert not recorder.improves(math.nan)
    recorder.best_row = {"epoch": 0, "val_mae": 1.0}
    assert not recorder.improves(math.nan)
    assert recorder.improves(0.5)


@pytest.mark.parametrize("missing", [False, True], ids=["all labels", "some labels missing"])
def test_metrics_do_not_depend_on_the_evaluation_batch_size(runs: SmallRuns, missing):
    file, _, words = runs.arguments()
    register()
    cfg = config.load(file, words)
    network, _, bundle = prepare(cfg)
    graphs = list(bundle.splits["train"])
    for graph in graphs[::3] if missing else ():
        graph.y = torch.full_like(graph.y, math.nan)
    task = GraphTask(network, make_loss("mse", "regression"), "regression", ["val"], OptimSettings()).eval()
    found = {}
    for size in (1, 7, 1000):
        task.epoch_metrics[1].reset()
        loader = data.make_loader(
            graphs, config.load(file, [*words, "train.batch_size", str(size)]), shuffle=False
        )
        with torch.no_grad():
            for index, batch in enumerate(loader):
                task.validation_step(batch, index)
        found[size] = task.epoch_values()
    assert found[7] == pytest.approx(found[1000], rel=1e-5)
    assert found[1] == pytest.approx(found[1000], rel=1e-5)


def test_same_seed_same_numbers_also_when_determinism_is_enforced(runs):
    try:
        for tag in ("a", "b"):
            assert runs.train("train.deterministic", "True", "optim.max_epoch", "2", tag=tag) == 0
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)
    assert_same_run(runs.path("a"), runs.path("b"))
    assert runs.train("seed", "1", "optim.max_epoch", "2", tag="c") == 0
    assert numbers(runs.path("a")) != numbers(runs.path("c"))
