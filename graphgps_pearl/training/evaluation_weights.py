r"""The weights that an evaluation sees: averaged over the steps, batch norms re-estimated, or both.

**Average.** After every optimiser step :math:`\bar\theta \leftarrow d_t \bar\theta + (1 - d_t) \theta` with
:math:`d_t = \min(d, (1 + t) / (10 + t))`, so that the first steps are soon forgotten. The running statistics
of batch norms are averaged likewise. That costs nothing and smooths them. They are those of the weights in
training, though, not those of the averaged weights.

**Re-estimation.** Before an evaluation some training graphs pass through the network with the batch norms in
training mode and everything else, dropout above all, in evaluation mode. The statistics are then those of the
function that is evaluated, if the batches are large. A batch norm subtracts the mean of its batch, so after
one of few graphs the next norm sees other values than it will in evaluation, and a deep network ends up with
all predictions shifted. So the graphs pass in one batch, or in few that are pooled:

.. math::
    \mu = \sum_b w_b \mu_b, \qquad \sigma^2 = \sum_b w_b (\sigma_b^2 + \mu_b^2) - \mu^2,

with :math:`w_b` the share of the graphs that are in batch b.

Training never sees any of this. Both work on a copy of the network, so the weights in training, their running
statistics and the random state stay as they are, and a resumed run is exact. Predictions and exports use a
checkpoint's ``state_dict``. Right after an evaluation, as in ``best.ckpt``, it holds the weights of that
evaluation. Between two evaluations it holds the average with its own statistics, or without an average the
weights in training: nothing is re-estimated in order to save. ``training_weights`` and ``average`` hold what
is needed to resume.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torch_geometric.data import Batch

from graphgps_pearl.errors import UserError
from graphgps_pearl.training.processes import total
from graphgps_pearl.training.task import GraphTask

_PREFIX = "network."


class Average(AveragedModel):
    """The average over the steps, parameters and buffers; whole numbers, which are counts or indices, are
    copied.

    torch's own ``update_parameters`` looks up every tensor of both networks by name, which takes five times
    as long.

    Args:
        network: what is averaged.
        decay: d above.
    """

    def __init__(self, network: nn.Module, decay: float) -> None:
        super().__init__(network, use_buffers=True)
        self.decay = decay
        self._sources = list(network.modules())
        self._targets = _tensors(self.module.modules())

    @torch.no_grad()
    def update(self) -> None:
        """Take in the network after a step of the optimiser."""
        current = _tensors(self._sources)
        if len(current) != len(self._targets):
            raise UserError(
                f"train.ema_decay: the network has {len(current)} parameters and buffers, and had "
                f"{len(self._targets)} when training began; make them all in __init__, or set it 0"
            )
        count = int(self.n_averaged)
        decay = min(self.decay, (1 + count) / (10 + count)) if count else 0.0
        averaged: list[tuple[Tensor, Tensor]] = []
        copied: list[tuple[Tensor, Tensor]] = []
        for pair in zip(self._targets, current, strict=True):
            (averaged if decay and pair[0].is_floating_point() else copied).append(pair)
        if averaged:
            torch._foreach_lerp_([old for old, _ in averaged], [new for _, new in averaged], 1 - decay)
        if copied:
            torch._foreach_copy_([old for old, _ in copied], [new for _, new in copied])
        self.n_averaged += 1


class EvaluationWeights(pl.Callback):
    """Evaluates other weights than the ones in training.

    Args:
        decay: d above; 0 = no average.
        batches: training batches that re-estimate the batch norms, the same ones for every evaluation; None =
            no re-estimation.
    """

    def __init__(self, decay: float = 0.0, batches: Iterable[Batch] | None = None) -> None:
        self.decay, self.batches = decay, batches
        self.average: Average | None = None
        self._copy: nn.Module | None = None
        self._evaluated: nn.Module | None = None  # None as soon as the weights have moved on
        self._resumed: dict[str, Any] = {}

    def on_load_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Keep what belongs to training until the network has its device and precision."""
        self._resumed = {key: checkpoint[key] for key in ("training_weights", "average") if key in checkpoint}

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Make the copies, and resume."""
        network = _network(pl_module)
        if "training_weights" in self._resumed:
            network.load_state_dict(self._resumed["training_weights"])
        if self.decay > 0:
            self.average = Average(network, self.decay)
            if "average" in self._resumed:
                self.average.load_state_dict(self._resumed["average"])
        if self.batches is not None:
            self._copy = copy.deepcopy(network)
        self._resumed = {}

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Follow every optimiser step; one that is skipped (float16) does not count."""

        def stepped(optimizer: torch.optim.Optimizer, *_: Any) -> None:
            # The loss scaler calls a fused optimiser's step also where it is to be skipped, and says so here.
            if bool(getattr(optimizer, "found_inf", False)):
                return
            self._evaluated = None
            if self.average is not None:
                self.average.update()

        trainer.optimizers[0].register_step_post_hook(stepped)

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Make the weights of this evaluation."""
        assert isinstance(pl_module, GraphTask)
        network = pl_module.network if self.average is None else self.average.module
        if self._copy is not None and self.batches is not None:
            self._copy.load_state_dict(network.state_dict())
            network = self._copy
            plugin = trainer.precision_plugin
            with plugin.val_step_context():
                reestimate(network, (_to_device(trainer, batch) for batch in self.batches))
        self._evaluated = network.eval()
        pl_module.evaluation = network.__call__

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        """Store the weights of the evaluation, or the average, as the network's; keep those in training."""
        shown = self._evaluated
        if self.average is not None:
            checkpoint["average"] = self.average.state_dict()
            shown = shown or self.average.module
        if shown is not None:
            checkpoint["training_weights"] = _network(pl_module).state_dict()
            shown_state = {_PREFIX + name: value for name, value in shown.state_dict().items()}
            checkpoint["state_dict"] = checkpoint["state_dict"] | shown_state


@torch.no_grad()
def reestimate(network: nn.Module, batches: Iterable[Batch]) -> None:
    """Set the running statistics of all batch norms to those of these batches, pooled, in place."""
    network.eval()
    norms = norms_of(network)
    momentum = [norm.momentum for norm in norms]
    sums = [torch.zeros(2, *norm.running_mean.shape).to(norm.running_mean).double() for norm in norms]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0  # each batch leaves its own statistics
    count = 0
    for batch in batches:
        network(batch)
        graphs = int(total(torch.tensor(batch.num_graphs)))
        count += graphs
        for norm, summed in zip(norms, sums, strict=True):
            mean = norm.running_mean.double()
            summed += graphs * torch.stack([mean, norm.running_var + mean.square()])
    for norm, summed in zip(norms, sums, strict=True):
        mean, square = summed / count
        norm.running_mean.copy_(mean)
        norm.running_var.copy_((square - mean.square()).clamp(min=0))
    for norm, old in zip(norms, momentum, strict=True):
        norm.momentum = old
    network.eval()


def _tensors(modules: Iterable[nn.Module]) -> list[Tensor]:
    """Their own parameters and buffers, each once."""
    found = (t for m in modules for t in (*m._parameters.values(), *m._buffers.values()))
    return list({id(t): t for t in found if t is not None}.values())


def norms_of(network: nn.Module) -> list[Any]:
    """The batch norms of a network: all modules with running statistics."""
    return [m for m in network.modules() if isinstance(getattr(m, "running_mean", None), Tensor)]


def _network(task: pl.LightningModule) -> nn.Module:
    assert isinstance(task, GraphTask)
    return task.network


def _to_device(trainer: pl.Trainer, batch: Batch) -> Batch:
    return trainer.strategy.batch_to_device(trainer.precision_plugin.convert_input(batch))
