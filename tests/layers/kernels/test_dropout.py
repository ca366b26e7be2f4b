import pytest
import torch

from graphgps_pearl.layers.kernels.dropout import dropout


@pytest.mark.parametrize("probability", [0.1, 0.5, 0.9])
def test_the_share_and_the_mean_are_those_of_dropout(probability):
    torch.manual_seed(0)
    out = dropout(torch.ones(1000, 1000), probability)
    kept = out[out != 0]
    assert kept.numel() / out.numel() == pytest.approx(1 - probability, abs=5 * 0.5e-3)
    assert torch.equal(kept, kept[:1].expand_as(kept))
    assert float(kept[0]) == pytest.approx(1 / (1 - probability), rel=2e-4)


def test_entries_are_dropped_one_by_one():
    """Four entries share a draw of 64 bits, and nothing else."""
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(250_000, 4), 0.5) == 0).double()
    assert torch.corrcoef(dropped.T).fill_diagonal_(0).abs().max() < 0.01


def test_the_gradient_goes_through_what_was_kept():
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)

    def seeded(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return dropout(x, 0.3)

    assert torch.autograd.gradcheck(seeded, (x,))
