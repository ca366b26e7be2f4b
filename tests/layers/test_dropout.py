import pytest
import torch

from graphgps_pearl.layers import Dropout
from graphgps_pearl.switches import use_kernels


@pytest.mark.parametrize("enabled", [True, False])
def test_the_module_drops_in_training_alone_and_follows_the_seed(enabled):
    module, x = Dropout(0.4), torch.ones(64, 64)
    with use_kernels(enabled):
        torch.manual_seed(1)
        first = module(x)
        torch.manual_seed(1)
        assert torch.equal(module(x), first)
        assert 0.5 < float((first != 0).float().mean()) < 0.7
        assert torch.equal(module.eval()(x), x)


@pytest.mark.parametrize(("probability", "expected"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_ends_are_torchs(probability, expected):
    assert torch.equal(Dropout(probability)(torch.ones(3)), torch.full((3,), expected))
