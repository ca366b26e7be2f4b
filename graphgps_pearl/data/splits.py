"""Splits as functions of labels, groups, sizes and a seed. All return name -> item numbers."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphgps_pearl.errors import ConfigError

Index = NDArray[np.int64]
_CV_SEED = 123  # the seed of GraphGPS's fold files
NO_VALIDATION = "-noval"  # at the end of a mode: the test fold is the validation fold too
FOLDS = "scikit-learn"  # what makes them; part of a run's record of its data


def counts_of(fractions: Sequence[float], total: int) -> list[int]:
    """Split ``total`` by three fractions that sum to 1, or by three counts that sum to ``total``."""
    if len(fractions) != 3 or min(fractions) < 0:
        raise ConfigError(f"dataset.split: {list(fractions)} must be three numbers >= 0 (train, val, test)")
    if all(float(part).is_integer() for part in fractions) and sum(fractions) == total:
        return [int(part) for part in fractions]
    if abs(sum(fractions) - 1.0) > 1e-6:
        raise ConfigError(
            f"dataset.split: {list(fractions)} must sum to 1 (fractions) or to the {total} graphs (counts)"
        )
    val, test = (max(1, round(part * total)) if part else 0 for part in fractions[1:])  # none is left empty
    if val + test >= total:
        raise ConfigError(f"dataset.split: {list(fractions)} of {total} graphs leaves none for training")
    return [total - val - test, val, test]


def in_order(order: Index, fractions: Sequence[float]) -> dict[str, Index]:
    """Cut an order of items into train, val and test."""
    train, val, _ = counts_of(fractions, len(order))
    return {"train": order[:train], "val": order[train : train + val], "test": order[train + val :]}


def random_split(total: int, fractions: Sequence[float], seed: int) -> dict[str, Index]:
    """A random partition, the same on every machine for one seed."""
    return in_order(np.random.default_rng(seed).permutation(total), fractions)


def size_split(sizes: Sequence[int], fractions: Sequence[float]) -> dict[str, Index]:
    """Train on the largest graphs, test on the smallest (DrugOOD's direction of the shift)."""
    return in_order(np.argsort(-np.asarray(sizes), kind="stable"), fractions)


def group_split(groups: Sequence[object], fractions: Sequence[float]) -> dict[str, Index]:
    """Whole groups (scaffolds), the largest first into train, so that val and test have rare ones only."""
    members: dict[object, list[int]] = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    train, val, _ = counts_of(fractions, len(groups))
    parts: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for group in sorted(members.values(), key=lambda items: (-len(items), items[0])):
        if len(parts["train"]) + len(group) <= train:
            parts["train"] += group
        elif len(parts["train"]) + len(parts["val"]) + len(group) <= train + val:
            parts["val"] += group
        else:
            parts["test"] += group
    return {name: np.asarray(items, dtype=np.int64) for name, items in parts.items()}


def domain_split(domains: Sequence[Any], ranks: Mapping[Any, float], seed: int) -> dict[str, Index]:
    """DrugOOD's five splits: whole domains in the order of ``ranks``, 60% of the items for training, the
    next 20% ``ood_val``, the rest ``ood_test``; the training domains' items go at random 60/20/20 to
    ``train``, ``iid_val`` and ``iid_test``."""
    total = len(domains)
    order = sorted(range(total), key=lambda i: (ranks[domains[i]], str(domains[i]), i))
    counts: dict[Any, int] = {}
    for i in order:
        counts[domains[i]] = counts.get(domains[i], 0) + 1
    ends, taken = [], 0
    for limit in (0.6, 0.8):
        for domain in list(counts):
            if taken + counts[domain] > limit * total:
                break
            taken += counts.pop(domain)
        ends.append(taken)
    seen = np.random.default_rng(seed).permutation(np.asarray(order[: ends[0]], dtype=np.int64))
    inside = in_order(seen, (0.6, 0.2, 0.2))
    return {
        "train": inside["train"],
        "iid_val": inside["val"],
        "iid_test": inside["test"],
        "ood_val": np.asarray(order[ends[0] : ends[1]], dtype=np.int64),
        "ood_test": np.asarray(order[ends[1] :], dtype=np.int64),
    }


def folds(labels: Sequence[int] | None, total: int, k: int) -> list[Index]:
    """k disjoint folds of nearly equal size; with labels, each class is spread evenly over them.

    These are scikit-learn's, and with their seed GraphGPS's.
    """
    from sklearn.model_selection import KFold, StratifiedKFold  # takes a second

    splitter = (KFold if labels is None else StratifiedKFold)(k, shuffle=True, random_state=_CV_SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a class that is not in every fold
        return [test for _, test in splitter.split(np.zeros(total), labels)]


def cross_validation(fold_list: list[Index], fold: int, validate: bool = True) -> dict[str, Index]:
    """Fold ``fold`` is test, the next one val, the others train (as in GraphGPS).

    Without ``validate`` all others train and val is the test fold: for protocols that have no validation.
    """
    k = len(fold_list)
    if not 0 <= fold < k:
        raise ConfigError(f"dataset.split_index: {fold} must be between 0 and {k - 1} for {k} folds")
    val = (fold + 1) % k if validate else fold
    train = [items for i, items in enumerate(fold_list) if i not in (fold, val)]
    return {"train": np.concatenate(train), "val": fold_list[val], "test": fold_list[fold]}


def by_mode(
    mode: str, total: int, labels: Sequence[int] | None, fractions: Sequence[float], seed: int, fold: int
) -> dict[str, Index]:
    """``dataset.split_mode`` for datasets of any kind: random, or cv-kfold-K and cv-stratifiedkfold-K."""
    if mode == "random":
        return random_split(total, fractions, seed)
    kind, k = parse_cv(mode)
    if kind == "stratifiedkfold" and labels is None:
        raise ConfigError(f"dataset.split_mode: {mode!r} needs classes; use cv-kfold-{k} for other targets")
    if kind == "stratifiedkfold" and labels is not None and k > max(Counter(labels).values()):
        raise ConfigError(
            f"dataset.split_mode: {mode!r} asks for more folds than any class has graphs; use cv-kfold-{k}"
        )
    if k > total:
        raise ConfigError(f"dataset.split_mode: {mode!r} asks for more folds than the {total} graphs")
    parts = folds(labels if kind == "stratifiedkfold" else None, total, k)
    return cross_validation(parts, fold, validate=not mode.endswith(NO_VALIDATION))


def parse_cv(mode: str) -> tuple[str, int]:
    """The kind and number of folds in ``cv-kfold-5``, ``cv-stratifiedkfold-10`` or ``...-noval``."""
    parts = mode.removesuffix(NO_VALIDATION).split("-")
    if len(parts) == 3 and parts[0] == "cv" and parts[1] in ("kfold", "stratifiedkfold"):
        if parts[2].isdigit() and int(parts[2]) >= 3:
            return parts[1], int(parts[2])
        raise ConfigError(f"dataset.split_mode: {mode!r} needs at least 3 folds (train, val and test)")
    raise ConfigError(
        f"dataset.split_mode: {mode!r} is not known here; "
        f"use standard, random, cv-kfold-K or cv-stratifiedkfold-K"
    )
