from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphgps_pearl.data.sampler import BatchOrder, Bounds

sizes_of = st.lists(st.integers(1, 60), min_size=4, max_size=120)
orders = st.fixed_dictionaries(
    {
        "batch_size": st.integers(4, 16),
        "seed": st.integers(0, 3),
        "shuffle": st.booleans(),
        "sampler": st.sampled_from(["full_batch", "size_bucket"]),
        "window": st.integers(1, 5),
    }
)
bounds_of = st.builds(Bounds, st.sampled_from([0, 50, 100]), st.sampled_from([0, 2000, 5000]))


def flat(batches: list[list[int]]) -> list[int]:
    return [graph for batch in batches for graph in batch]


@settings(deadline=None)
@given(sizes_of, orders, bounds_of, st.integers(1, 4), st.integers(0, 3))
def test_every_graph_once_on_exactly_one_rank(sizes, options, bounds, world_size, epoch) -> None:
    ranks = []
    for rank in range(world_size):
        order = BatchOrder(sizes, bounds=bounds, rank=rank, world_size=world_size, **options)
        order.set_epoch(epoch)
        ranks.append(order.batches())
    assert sorted(flat([batch for batches in ranks for batch in batches])) == list(range(len(sizes)))
    assert len({len(batches) for batches in ranks}) == 1  # all ranks take the same number of steps
    assert all(batch for batches in ranks for batch in batches)


@settings(deadline=None)
@given(sizes_of, orders, bounds_of, st.integers(0, 3))
def test_bounds_hold_unless_a_graph_alone_exceeds_them(sizes, options, bounds, epoch) -> None:
    order = BatchOrder(sizes, bounds=bounds, **options)
    order.set_epoch(epoch)
    for batch in order.batches():
        counts = [sizes[graph] for graph in batch]
        assert len(batch) <= options["batch_size"]
        assert len(batch) == 1 or not bounds.exceeded(sum(counts), sum(n * n for n in counts))


@settings(deadline=None)
@given(sizes_of, orders, st.integers(0, 5))
def test_the_order_is_a_function_of_seed_and_epoch(sizes, options, epoch) -> None:
    fresh, used = BatchOrder(sizes, **options), BatchOrder(sizes, **options)
    for passed in range(3):
        used.set_epoch(passed)
        list(used)
    fresh.set_epoch(epoch)
    used.set_epoch(epoch)
    assert list(fresh) == list(used)


@pytest.mark.parametrize("sampler", ["full_batch", "size_bucket"])
def test_epochs_and_seeds_differ(sampler: str) -> None:
    sizes = list(range(1, 101))

    def batches(seed: int, epoch: int) -> list[list[int]]:
        order = BatchOrder(sizes, 10, seed=seed, shuffle=True, sampler=sampler)
        order.set_epoch(epoch)
        return order.batches()

    assert batches(0, 0) != batches(0, 1) and batches(0, 0) != batches(1, 0)


def test_without_shuffling_the_order_stays() -> None:
    for sampler in ("full_batch", "size_bucket"):
        order = BatchOrder([5, 1, 3, 2, 4], 2, seed=0, shuffle=False, sampler=sampler)
        assert order.batches() == [[0, 1], [2, 3], [4]]


def test_buckets_are_of_similar_sizes_and_in_random_order() -> None:
    sizes = np.random.default_rng(0).integers(8, 400, 2000)

    def padded_share(sampler: str) -> float:
        order = BatchOrder(sizes.tolist(), 32, seed=0, shuffle=True, sampler=sampler, window=8)
        real = sum(int((sizes[b] ** 2).sum()) for b in order.batches())
        return real / sum(len(b) * int(sizes[b].max()) ** 2 for b in order.batches())

    assert padded_share("size_bucket") > 0.75 > 0.45 > padded_share("full_batch")
    order = BatchOrder(sizes.tolist(), 32, seed=0, shuffle=True, sampler="size_bucket", window=8)
    largest = [int(sizes[batch].max()) for batch in order.batches()]
    rising = sum(a < b for a, b in pairwise(largest)) / (len(largest) - 1)
    assert 0.3 < rising < 0.7


def test_a_window_reaches_no_further_than_its_batches() -> None:
    sizes = np.random.default_rng(0).integers(1, 100, 96).tolist()
    plain = BatchOrder(sizes, 8, seed=3, shuffle=True)
    bucketed = BatchOrder(sizes, 8, seed=3, shuffle=True, sampler="size_bucket", window=3)
    windows = [set(flat(plain.batches()[i : i + 3])) for i in range(0, 12, 3)]
    for batch in bucketed.batches():
        assert any(set(batch) <= window for window in windows)


def test_ranks_share_the_batches_of_one_process() -> None:
    sizes = np.random.default_rng(0).integers(1, 100, 64).tolist()
    for sampler in ("full_batch", "size_bucket"):
        alone = BatchOrder(sizes, 8, seed=1, shuffle=True, sampler=sampler).batches()
        pair = [
            BatchOrder(sizes, 8, seed=1, shuffle=True, sampler=sampler, rank=rank, world_size=2).batches()
            for rank in (0, 1)
        ]
        assert [sorted(a + b) for a, b in zip(*pair, strict=True)] == [sorted(batch) for batch in alone]


@pytest.mark.parametrize(
    "wrong",
    [
        {"sampler": "neighbor"},
        {"batch_size": 1, "world_size": 2},
        {"rank": 2, "world_size": 2},
        {"window": 0},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        BatchOrder([1, 2, 3], **{"batch_size": 4, "seed": 0, "shuffle": True, **wrong})
