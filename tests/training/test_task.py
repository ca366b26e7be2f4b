"""Gradients of a step: scaled, clipped, measured."""

from __future__ import annotations

import lightning.pytorch as pl
import pytest
import torch
from lightning.pytorch.plugins import MixedPrecision
from torch import Tensor, nn

from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.task import GraphTask, OptimSettings


class Linear(nn.Module):
    """Predicts rows [B, 2] of (x, y)."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 1)

    def forward(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        return self.linear(batch[:, :3]), batch[:, 3:]


def norms_and_weights(
    scale: float | None, limit: float | None, accumulated: int = 1, base_lr: float = 0.1
) -> tuple[list[float], Tensor]:
    torch.manual_seed(0)
    settings = OptimSettings(base_lr=base_lr, optimizer="adagrad", clip_grad_norm_value=limit)
    task = GraphTask(Linear(), make_loss("l1", "regression"), "regression", [], settings)
    plugins = []
    if scale is not None:
        plugins = [MixedPrecision("16-mixed", "cpu", scaler=torch.amp.GradScaler("cpu", init_scale=scale))]
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        accumulate_grad_batches=accumulated,
        plugins=plugins,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = torch.randn(6, 5, 4, generator=torch.Generator().manual_seed(1))
    trainer.fit(task, torch.utils.data.DataLoader(data, batch_size=None))
    return list(task.grad_norms), task.network.linear.weight.detach()


@pytest.mark.parametrize("limit", [None, 0.1])
def test_gradients_are_unscaled_before_they_are_clipped(limit: float | None) -> None:
    """A fused optimiser leaves unscaling to its step; clipping comes before that."""
    (plain, weight), (scaled, other) = (norms_and_weights(s, limit) for s in (None, 2.0**10))
    assert len(plain) == 6 and scaled == pytest.approx(plain, rel=0.02)
    torch.testing.assert_close(other, weight, rtol=0.02, atol=1e-3)


def test_steps_that_the_scaler_skips_have_no_norm() -> None:
    norms, weight = norms_and_weights(2.0**40, None)  # overflows float16 until the scaler has come down
    assert len(norms) < 6 and all(torch.tensor(norms).isfinite()) and bool(weight.isfinite().all())


@pytest.mark.parametrize("scale", [None, 2.0**10])
def test_an_incomplete_group_of_batches_is_averaged_over_its_own(scale: float | None) -> None:
    """Of six batches by four, the last two make a step, whose gradient is their mean and not half of it."""
    mean, last = torch.zeros(4), torch.randn(6, 5, 4, generator=torch.Generator().manual_seed(1))[4:]
    torch.manual_seed(0)
    network = Linear()
    for batch in last:
        pred, true = network(batch)
        grads = torch.autograd.grad((pred - true).abs().mean(), list(network.parameters()))
        mean += torch.cat([grad.flatten() for grad in grads]) / 2
    norms, _ = norms_and_weights(scale, None, accumulated=4, base_lr=1e-9)
    assert norms[-1] == pytest.approx(mean.norm().item(), rel=0.02)
