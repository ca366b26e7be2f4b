"""The laws of the samples, and the table they are read from."""

from __future__ import annotations

import pytest
import torch

from graphgps_pearl.pearl import RPEARL, draw_samples
from graphgps_pearl.pearl.signals import BLOCK, _permute_bits, _reverse, _scramble, _sobol, make_key
from graphgps_pearl.vocabulary import DISTRIBUTIONS

MOMENTS = {  # E q, E q², E q³, E q⁴
    "gaussian": (0, 1, 0, 3),
    "rademacher": (0, 1, 0, 1),
    "two_point": (0, 1, 1, 2),
    "sobol": (0, 1, 0, 3),
}


def table(distribution: str, nodes: int, samples: int, seed: int = 0) -> torch.Tensor:
    return draw_samples(distribution, make_key(seed), torch.arange(nodes), 0, samples, torch.float64)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_moments(distribution: str) -> None:
    q = table(distribution, 2000, 200)
    for power, expected in enumerate(MOMENTS[distribution], start=1):
        deviation = float((q**power).std())
        assert abs(float((q**power).mean()) - expected) <= 4.5 * deviation / q.numel() ** 0.5 + 1e-12


def test_two_point_law_takes_two_values() -> None:
    golden = (1 + 5**0.5) / 2
    assert sorted(set(table("two_point", 20, 20).flatten().tolist())) == pytest.approx([-1 / golden, golden])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_signals_are_uncorrelated_between_nodes_and_between_samples(distribution: str) -> None:
    q = table(distribution, 300, 256)
    between_nodes = torch.corrcoef(q)[torch.triu(torch.ones(300, 300), 1) > 0] * 256**0.5
    assert 0.9 < float(between_nodes.square().mean().sqrt()) < 1.1
    assert abs(float(between_nodes.mean())) < 0.1
    lagged = (q[:, 1:] * q[:, :-1]).mean() * (300 * 255) ** 0.5
    assert abs(float(lagged)) < 5


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_larger_table_begins_with_the_smaller_one(distribution: str) -> None:
    assert torch.equal(table(distribution, 7, 20), table(distribution, 5000, 20)[:7])
    assert not torch.equal(table(distribution, 7, 20), table(distribution, 7, 20, seed=1))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_any_part_can_be_drawn_by_itself(distribution: str) -> None:
    position = torch.tensor([11, 3])
    part = draw_samples(distribution, make_key(0), position, 5, 9, torch.float64, num_samples=20)
    assert torch.equal(part, table(distribution, 20, 20)[position, 5:9])


@pytest.mark.parametrize("num_samples", [16, 50, 64, 100])
def test_sobol_columns_are_stratified(num_samples: int) -> None:
    """A column of 2^k points has one in each of 2^k equal cells; fewer points share no cell of 2^k."""
    u = torch.special.ndtr(table("sobol", 3 * BLOCK, num_samples))
    cells = 1 << (num_samples - 1).bit_length()
    for column in u:
        assert len(set((column * cells).long().tolist())) == num_samples


def test_sobol_blocks_are_a_scrambled_net() -> None:
    """The eight-dimensional points are those of torch's engine, up to scrambling, order and column order."""
    points = torch.stack([_sobol(torch.arange(64)[None], torch.tensor([c]))[0] for c in range(BLOCK)], dim=1)
    short = [_sobol(torch.arange(64)[None], torch.tensor([c]), bits=6)[0] for c in range(BLOCK)]
    assert torch.equal(torch.stack(short, dim=1), points)  # higher bits of the index are zero
    engine = torch.quasirandom.SobolEngine(BLOCK).draw(64, dtype=torch.float64)
    assert {tuple(p) for p in (points * 2.0**-30).tolist()} == {tuple(p) for p in engine.tolist()}


def test_scrambling_is_a_permutation_that_keeps_the_cells() -> None:
    x = torch.arange(0, 1 << 30, 1 << 20)
    y = _scramble(x, torch.tensor([12345678901234]))
    assert len(set(y.tolist())) == len(x)
    for bits in range(1, 10):  # points of one cell stay together, those of two cells apart
        before, after = x >> (30 - bits), y >> (30 - bits)
        assert len(set(zip(before.tolist(), after.tolist(), strict=True))) == 1 << bits
    assert torch.equal(_reverse(_reverse(x)), x)


@pytest.mark.parametrize("bits", [1, 2, 5, 8])
def test_shuffles_are_permutations(bits: int) -> None:
    keys = torch.arange(50).unsqueeze(1)
    shuffled = _permute_bits(torch.arange(1 << bits).expand(50, -1), bits, make_key(keys))
    assert torch.equal(shuffled.sort(dim=1).values, torch.arange(1 << bits).expand(50, -1))
    assert len({tuple(row) for row in shuffled.tolist()}) >= min(50, 2 ** (bits - 1))


RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_evaluation_is_repeatable_and_moves_no_random_state(distribution: str) -> None:
    pe = RPEARL(dim_pe=4, num_samples=6, distribution=distribution, num_eval_draws=2).eval()
    state = torch.get_rng_state()
    first = pe(RING)
    assert torch.equal(torch.get_rng_state(), state)
    torch.rand(3)
    assert torch.equal(pe(RING), first)


def test_training_draws_afresh_from_torchs_generator() -> None:
    pe = RPEARL(dim_pe=4, num_samples=6, norm="layer")
    torch.manual_seed(3)
    first, second = pe(RING), pe(RING)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(pe(RING), first)
    assert torch.equal(pe(RING), second)


def test_graphs_of_a_training_batch_get_different_samples_and_those_of_an_evaluation_batch_the_same() -> None:
    pe = RPEARL(dim_pe=4, num_samples=6)
    edges, batch = torch.cat([RING, RING + 4], dim=1), torch.tensor([0] * 4 + [1] * 4)
    one, two = pe(edges, batch).split(4)
    assert not torch.allclose(one, two)
    one, two = pe.eval()(edges, batch).split(4)
    assert torch.equal(one, two)


def test_a_graph_larger_than_any_before() -> None:
    pe = RPEARL(dim_pe=4, num_samples=6, distribution="sobol", hidden_dim=4, num_layers=1).eval()
    small = pe(RING)
    node = torch.arange(30_000)
    large = pe(torch.stack([node, (node + 1) % 30_000]))
    assert bool(large.isfinite().all())
    assert torch.equal(pe(RING), small)


def test_seeds_and_tables_differ() -> None:
    pe = RPEARL(dim_pe=4, num_samples=6).eval()
    outputs = []
    for pe.eval_seed in (0, 1):
        for pe.num_eval_draws in (1, 2):
            outputs.append(pe(RING))
    assert len({output.sum().item() for output in outputs}) == 4
