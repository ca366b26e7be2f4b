"""The training task: a network, its loss and metrics, and one optimiser, as a Lightning module.

Plain settings in, no global config. Every training step is seeded from (seed, epoch, batch, rank),
so what is random in it (dropout, R-PEARL's samples) is the same in a resumed run. What an epoch gathers
(metrics, gradient norms) can be taken out in its middle and put back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, cast

import lightning.pytorch as pl
import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch_geometric.data import Batch

from graphgps_pearl.data import GraphLoader
from graphgps_pearl.errors import UserError
from graphgps_pearl.training.losses import Loss
from graphgps_pearl.training.metrics import Custom, EpochMetrics, Moments, count_labels, no_rows
from graphgps_pearl.training.muon import matrices_of
from graphgps_pearl.training.processes import connected, total
from graphgps_pearl.training.schedules import OptimSettings, make_optimizer, make_schedule


class TrainingBatches:
    """A loader without a length: Lightning then takes the end of an epoch from the iterator.

    An epoch that is resumed in its middle is shorter than the others. To Lightning it is an epoch like any
    other, so none of its restart bookkeeping is involved.
    """

    def __init__(self, loader: GraphLoader) -> None:
        self.loader = loader
        self.sampler = loader.sampler  # Lightning names the epoch to it

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.loader)

    def num_batches(self) -> int:
        """Batches in the present epoch, resumed or not."""
        return self.loader.num_batches()

    def graphs(self, batch: int) -> list[int]:
        """Which graphs of the training split are in this process's part of a batch of the present epoch."""
        return self.sampler.batches()[batch]


class _Step(NamedTuple):
    """What a batch has given, until its loss is known to be finite."""

    number: int  # of the batch
    loss: Tensor
    pred: Tensor
    true: Tensor
    batch: Batch

    def wrong_graphs(self) -> list[int]:
        """The graphs of the batch whose predictions or labels are not finite."""
        rows = self.true.view(len(self.true), -1)
        finite = torch.isfinite(self.pred.flatten(1)).all(dim=1) & ~torch.isinf(rows).any(dim=1)
        wrong = (~finite).nonzero().flatten()
        if len(self.pred) != self.batch.num_graphs:  # rows are nodes, or pairs of them
            nodes = len(self.pred) == self.batch.num_nodes
            wrong = self.batch.batch[wrong].unique() if nodes else wrong[:0]
        return wrong.tolist()


class NonFiniteError(UserError):
    """A loss or gradient that is not a number; training stops before it reaches the weights."""


def step_seed(seed: int, epoch: int, batch: int, rank: int) -> int:
    """A 63-bit seed for one training step, different for each of its arguments."""
    state = np.random.SeedSequence([seed, epoch, batch, rank]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


class GraphTask(pl.LightningModule):
    """Trains ``network`` (batch -> predictions, labels) and keeps the metrics of every split.

    ``moments`` are mean and standard deviation of standardised targets whose metrics are to be in the
    original unit; ``custom`` are further metrics by name. ``task`` is what is predicted for, graphs, nodes or
    edges.
    """

    def __init__(
        self,
        network: nn.Module,
        loss: Loss,
        task_type: str,
        eval_splits: Sequence[str],
        optim: OptimSettings,
        seed: int = 0,
        moments: Moments | None = None,
        custom: Mapping[str, Custom] | None = None,
        task: str = "graph",
    ) -> None:
        super().__init__()
        self.network = network
        self.evaluation: Callable[[Batch], tuple[Tensor, Tensor]] | None = (
            None  # other weights than training's
        )
        self.loss = loss
        self.splits = ("train", *eval_splits)
        self.optim = optim
        self.seed = seed
        self._epoch_metrics = nn.ModuleList(
            EpochMetrics(task_type, moments, custom, task) for _ in self.splits
        )
        self.plateau: ReduceLROnPlateau | None = None
        self._plateau_state: dict[str, Any] | None = None
        self.grad_norms: list[float] = []
        self.last_batch: Batch | None = None  # what an error is about
        self._unchecked: list[_Step] = []  # since the last step of the optimiser
        self.in_epoch = False
        self.first_batch = 0  # where a resumed epoch begins
        self.batches_run = 0  # in this epoch, by this process
        self._resumed: tuple[int, list[dict[str, Any]]] | None = None
        self._schedule = make_schedule(optim)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Predictions and labels of a batch of graphs."""
        return self.network(batch)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """One optimiser; the schedule is applied in ``on_train_epoch_start``, as a function of the epoch."""
        o = self.optim
        parameters = [p for p in self.parameters() if p.requires_grad]
        optimizer = make_optimizer(
            o.optimizer,
            parameters,
            base_lr=o.base_lr,
            weight_decay=o.weight_decay,
            momentum=o.momentum,
            matrices=matrices_of(self.network),
        )
        if o.scheduler == "reduce_on_plateau":
            self.plateau = ReduceLROnPlateau(
                optimizer, factor=o.reduce_factor, patience=o.schedule_patience, min_lr=o.min_lr
            )
        return optimizer

    @property
    def epoch_metrics(self) -> list[EpochMetrics]:
        """The metrics of every split, in the order of ``splits``."""
        return cast("list[EpochMetrics]", list(self._epoch_metrics))

    @property
    def lr(self) -> float:
        """The learning rate in force."""
        return float(self.trainer.optimizers[0].param_groups[0]["lr"])

    @property
    def batches_done(self) -> int:
        """Batches of the epoch that are done, before an interruption and after it."""
        return self.first_batch + self.batches_run

    def on_train_epoch_start(self) -> None:
        """Set the epoch's learning rate and start its metrics, or take up those of an interrupted epoch."""
        if self.plateau is None:
            for group in self.trainer.optimizers[0].param_groups:
                group["lr"] = self.optim.base_lr * self._schedule(self.current_epoch)
        self.grad_norms.clear()
        self._unchecked.clear()
        for metrics in self.epoch_metrics:
            metrics.reset()
        self.in_epoch, self.first_batch, self.batches_run = True, 0, 0
        if self._resumed is not None:
            self.first_batch, states = self._resumed
            self._resumed = None
            self._load_running(states)

    def finish_epoch(self) -> None:
        """From here on a checkpoint is one between two epochs."""
        self.in_epoch = False

    def running_state(self) -> dict[str, Any]:
        """What this process has gathered of the running epoch."""
        return {"grad_norms": list(self.grad_norms), "train": self.epoch_metrics[0].running_state()}

    def resume(self, batches: int, states: list[dict[str, Any]]) -> None:
        """Begin the next epoch after ``batches`` batches, with what the processes had gathered of it."""
        self._resumed = (batches, states)

    def _load_running(self, states: list[dict[str, Any]]) -> None:
        self.grad_norms.extend(states[0]["grad_norms"])
        own = states[self.global_rank : self.global_rank + 1]
        if len(states) != self.trainer.world_size:
            # Another number of processes than before: the first one takes what all of them had. The others
            # begin with no rows, not with nothing: the epoch may have no batch left, and all have to compute.
            own = states if self.global_rank == 0 else [{"train": no_rows(states[0]["train"])}]
        for state in own:
            self.epoch_metrics[0].add_running_state(state["train"])

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        """Move a batch; the host goes on meanwhile. (Lightning would wait: it knows tensors, not batches.)"""
        return batch.to(device, non_blocking=device.type != "cpu")

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Seed the step, so that it does not depend on what ran before it in this process."""
        torch.manual_seed(step_seed(self.seed, self.current_epoch, self.batches_done, self.global_rank))

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        """Mean loss of a batch."""
        self.last_batch = batch
        pred, true = self.network(batch)
        loss = self.loss(pred, true)
        self._unchecked.append(_Step(self.batches_done, loss.detach(), pred.detach(), true, batch))
        self.epoch_metrics[0].update(pred, true, loss)
        self.batches_run += 1
        if connected():
            # Gradients are averaged over the processes, which may hold unequal numbers of labels.
            labels = count_labels(true).double()
            loss = loss * (labels * self.trainer.world_size / total(labels).clamp(min=1)).to(loss.dtype)
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip the norm if asked to, keep it for the record, and let no NaN through to the weights.

        Losses and norm are read together, because a GPU makes the host wait for every number it reads.
        """
        scaler = getattr(self.trainer.precision_plugin, "scaler", None)
        if scaler is not None and getattr(optimizer, "_step_supports_amp_scaling", False):
            scaler.unscale_(optimizer)  # Lightning leaves it to the step of a fused optimiser, after this
        unchecked, self._unchecked = self._unchecked, []
        if len(unchecked) < self.trainer.accumulate_grad_batches:
            # The last group of an epoch; Lightning has divided by the number of a complete one.
            for parameter in self.parameters():
                if parameter.grad is not None:
                    parameter.grad *= self.trainer.accumulate_grad_batches / len(unchecked)
        limit = self.optim.clip_grad_norm_value
        updated = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        norm = nn.utils.get_total_norm([p.grad for p in updated])
        if limit is not None:
            nn.utils.clip_grads_with_norm_(updated, limit, norm)
        value, *losses = torch.stack([norm, *(step.loss.to(norm.dtype) for step in unchecked)]).tolist()
        for step, loss in zip(unchecked, losses, strict=True):
            if not math.isfinite(loss):
                self._stop(f"the loss is {loss}", step.number, step.wrong_graphs())
        if math.isfinite(value):
            self.grad_norms.append(value)
        elif scaler is None:  # a loss scaler meets infinities on purpose and skips those steps itself
            self._stop(f"the gradient norm is {value}", self.batches_done - 1, [])

    def validation_step(self, batch: Batch, batch_idx: int, dataloader_idx: int = 0) -> None:
        """Add a batch to the metrics of its split."""
        self.last_batch = batch
        pred, true = (self.evaluation or self.network)(batch)
        self.epoch_metrics[1 + dataloader_idx].update(pred, true, self.loss(pred, true))

    def epoch_values(self) -> dict[str, float]:
        """``<split>_<metric>`` of the epoch that just ended, for the splits that were run."""
        return {
            f"{split}_{name}": value
            for split, metrics in zip(self.splits, self.epoch_metrics, strict=True)
            if metrics.update_called
            for name, value in metrics.compute().items()
        }

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep the plateau scheduler's state: it is the only schedule that has one."""
        if self.plateau is not None:
            checkpoint["plateau"] = self.plateau.state_dict()

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Hand the plateau scheduler its state back once it exists."""
        self._plateau_state = checkpoint.get("plateau")

    def on_train_start(self) -> None:
        """Restore what could not be restored before the optimiser existed."""
        if self.plateau is not None and self._plateau_state is not None:
            self.plateau.load_state_dict(self._plateau_state)

    def _stop(self, what: str, batch: int, positions: list[int]) -> NoReturn:
        """End the run, naming the graphs at these positions in a batch (none known: all of the batch)."""
        self.batches_run -= self.batches_done - batch  # those of the step that is refused
        graphs = self._graphs_of_batch(batch)
        if positions and graphs:
            graphs = [graphs[position] for position in positions]
        listing = ", ".join(map(str, graphs[:8] or positions[:8])) + (", ..." if len(graphs) > 8 else "")
        raise NonFiniteError(
            f"epoch {self.current_epoch + 1}, batch {batch + 1}: {what} (training graphs "
            f"{listing}); weights not updated, the last checkpoint is whole. Lower optim.base_lr, "
            "set optim.clip_grad_norm True, or look at these graphs"
        )

    def _graphs_of_batch(self, batch: int) -> list[int]:
        batches = self.trainer.train_dataloader
        return batches.graphs(batch) if isinstance(batches, TrainingBatches) else []
