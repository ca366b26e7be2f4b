import math

import pytest
import torch

from graphgps_pearl.training.schedules import OptimSettings, make_optimizer, make_schedule
from graphgps_pearl.vocabulary import OPTIMIZERS


def test_cosine_with_warmup_has_the_published_shape():
    factor = make_schedule(OptimSettings(scheduler="cosine_with_warmup", max_epoch=30, num_warmup_epochs=3))
    assert factor(0) == 1e-6
    assert factor(1) == pytest.approx(1 / 3)
    assert factor(3) == 1
    assert factor(3 + 27 // 3) == pytest.approx(0.5 * (1 + math.cos(math.pi / 3)))
    assert factor(30) == pytest.approx(0, abs=1e-12)


def test_linear_with_warmup():
    factor = make_schedule(OptimSettings(scheduler="linear_with_warmup", max_epoch=10, num_warmup_epochs=2))
    assert [factor(e) for e in (1, 2, 6, 10)] == pytest.approx([0.5, 1, 0.5, 0])


def test_polynomial_with_warmup_ends_at_a_rate():
    factor = make_schedule(
        OptimSettings(scheduler="polynomial_with_warmup", max_epoch=10, num_warmup_epochs=2, base_lr=1e-3)
    )
    assert [factor(e) for e in (0, 1, 2)] == pytest.approx([0, 0.5, 1])
    assert 1e-3 * factor(6) == pytest.approx((1e-3 - 1e-7) / 2 + 1e-7)
    assert 1e-3 * factor(10) == 1e-3 * factor(12) == pytest.approx(1e-7)


def test_step_equals_torch():
    factor = make_schedule(OptimSettings(scheduler="step", max_epoch=10, steps=(3, 6), lr_decay=0.1))
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    reference = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 6], gamma=0.1)
    for epoch in range(10):
        assert factor(epoch) == pytest.approx(optimizer.param_groups[0]["lr"])
        optimizer.step()
        reference.step()


def test_none_and_cos():
    assert make_schedule(OptimSettings(scheduler="none", max_epoch=5))(3) == 1
    assert make_schedule(OptimSettings(scheduler="cos", max_epoch=8))(4) == pytest.approx(0.5)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimiser_takes_a_step(name):
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = make_optimizer(name, [weight], base_lr=0.1, weight_decay=0.01)
    weight.square().sum().backward()
    optimizer.step()
    assert (weight < 1).all()
    assert optimizer.param_groups[0]["weight_decay"] == 0.01


def test_a_step_that_the_loss_scaler_skips_leaves_no_momentum() -> None:
    """A fused SGD would keep memory that was never written as its momentum."""
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = make_optimizer("sgd", [weight], base_lr=0.1, weight_decay=0.0, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(weight.sum() * torch.inf).backward()
    scaler.step(optimizer)
    assert optimizer.state[weight].get("momentum_buffer") is None
