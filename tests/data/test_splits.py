from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphgps_pearl.data import splits
from graphgps_pearl.errors import ConfigError

FRACTIONS = (0.8, 0.1, 0.1)


def assert_partition(parts: dict[str, np.ndarray], total: int) -> None:
    assert sorted(np.concatenate(list(parts.values())).tolist()) == list(range(total))


@given(st.integers(3, 200), st.integers(0, 5))
def test_random_splits_are_partitions_fixed_by_their_seed(total: int, seed: int) -> None:
    parts = splits.random_split(total, FRACTIONS, seed)
    assert_partition(parts, total)
    again = splits.random_split(total, FRACTIONS, seed)
    assert all(np.array_equal(parts[name], again[name]) for name in parts)


def test_counts_that_sum_to_the_whole_are_counts() -> None:
    assert splits.counts_of([7, 2, 1], 10) == [7, 2, 1]
    assert splits.counts_of(FRACTIONS, 10) == [8, 1, 1]


@pytest.mark.parametrize("wrong", [[0.5, 0.5], [0.8, 0.3, 0.1], [1.5, -0.25, -0.25]])
def test_fractions_that_are_none_name_the_key(wrong: list[float]) -> None:
    with pytest.raises(ConfigError, match=r"dataset\.split"):
        splits.counts_of(wrong, 10)


@given(st.lists(st.integers(1, 50), min_size=5, max_size=100))
def test_size_splits_train_on_the_large_and_test_on_the_small(sizes: list[int]) -> None:
    parts = splits.size_split(sizes, (0.6, 0.2, 0.2))
    assert_partition(parts, len(sizes))
    values = np.asarray(sizes)
    if len(parts["test"]) and len(parts["train"]):
        assert values[parts["train"]].min() >= values[parts["test"]].max()


@given(st.lists(st.integers(0, 12), min_size=5, max_size=100))
def test_group_splits_never_divide_a_group(groups: list[int]) -> None:
    parts = splits.group_split(groups, (0.6, 0.2, 0.2))
    assert_partition(parts, len(groups))
    owner: dict[int, str] = {}
    for name, items in parts.items():
        for item in items:
            assert owner.setdefault(groups[item], name) == name


@given(st.lists(st.integers(0, 12), min_size=20, max_size=100))
def test_domain_splits_keep_domains_apart_outside_training(domains: list[int]) -> None:
    counts = Counter(domains)
    assume(max(counts.values()) <= 0.5 * len(domains))
    parts = splits.domain_split(domains, {domain: -count for domain, count in counts.items()}, seed=0)
    assert_partition(parts, len(domains))
    seen = {domains[i] for name in ("train", "iid_val", "iid_test") for i in parts[name]}
    outside = [{domains[i] for i in parts[name]} for name in ("ood_val", "ood_test")]
    assert not seen & outside[0] and not seen & outside[1] and not outside[0] & outside[1]
    if seen and outside[1]:
        assert min(counts[d] for d in seen) >= max(counts[d] for d in outside[1])


@settings(deadline=None)  # the first call imports scikit-learn
@given(st.lists(st.integers(0, 3), min_size=12, max_size=120), st.integers(3, 6))
def test_folds_are_even_in_size_and_in_every_class(labels: list[int], k: int) -> None:
    assume(max(Counter(labels).values()) >= k)
    parts = splits.folds(labels, len(labels), k)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(labels)))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for label in set(labels):
        counts = [sum(labels[i] == label for i in part) for part in parts]
        assert max(counts) - min(counts) <= 1


def test_the_folds_are_those_of_graphgps() -> None:
    """First items of its fold files' recipe: scikit-learn's splitters, shuffled with seed 123."""
    stratified = splits.folds([0] * 10 + [1] * 5, 15, 5)
    assert [part.tolist() for part in stratified] == [
        [1, 6, 13],
        [5, 9, 14],
        [0, 3, 10],
        [2, 7, 11],
        [4, 8, 12],
    ]
    assert [part.tolist() for part in splits.folds(None, 9, 3)] == [[0, 5, 7], [1, 3, 6], [2, 4, 8]]
    with pytest.raises(ConfigError, match="more folds than any class has graphs; use cv-kfold-5"):
        splits.by_mode("cv-stratifiedkfold-5", 9, [0, 1, 2] * 3, FRACTIONS, 0, 0)


def test_every_fold_is_test_once_and_validation_once() -> None:
    parts = splits.folds(None, 50, 5)
    runs = [splits.cross_validation(parts, fold) for fold in range(5)]
    for name in ("val", "test"):
        assert sorted(np.concatenate([run[name] for run in runs]).tolist()) == list(range(50))
    for run in runs:
        assert_partition(run, 50)


@pytest.mark.parametrize(
    ("mode", "fold", "message"),
    [
        ("cv-kfold-5", 5, "dataset.split_index: 5 must be between 0 and 4"),
        ("cv-kfold-2", 0, "at least 3 folds"),
        ("cv-kfold-99", 0, "more folds than the 20 graphs"),
        ("cv-stratifiedkfold-5", 0, "needs classes"),
        ("temporal", 0, "'temporal' is not known here"),
    ],
)
def test_modes_that_cannot_be_say_why(mode: str, fold: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        splits.by_mode(mode, 20, None, FRACTIONS, 0, fold)


def test_without_validation_nine_folds_train_and_the_test_fold_validates() -> None:
    labels = [i % 2 for i in range(40)]
    for fold in range(10):
        honest = splits.by_mode("cv-stratifiedkfold-10", 40, labels, [], 0, fold)
        other = splits.by_mode("cv-stratifiedkfold-10-noval", 40, labels, [], 0, fold)
        assert honest["test"].tolist() == other["test"].tolist() == other["val"].tolist()
        assert sorted(other["train"].tolist()) == sorted([*honest["train"].tolist(), *honest["val"].tolist()])
