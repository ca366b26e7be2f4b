"""Which graphs go into which batch: a pure function of (seed, epoch), the same on every rank.

``full_batch`` (GraphGym's name) is plain shuffled batches. ``size_bucket`` shuffles, sorts by size within a
window of a few batches, cuts batches of similar sizes and shuffles their order: padding shrinks, and
training changes a little, since graphs of one batch resemble each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Sampler

from graphgps_pearl.vocabulary import SAMPLERS


@dataclass(frozen=True)
class Bounds:
    """Limits on one rank's batch: total nodes, and total pairs (the sum of n^2); 0 is no limit."""

    max_nodes: int = 0
    max_pairs: int = 0

    def __bool__(self) -> bool:
        return self.max_nodes > 0 or self.max_pairs > 0

    def exceeded(self, nodes: int, pairs: int) -> bool:
        """Whether a batch with these totals is too large."""
        return 0 < self.max_nodes < nodes or 0 < self.max_pairs < pairs


def epoch_order(count: int, seed: int, epoch: int, shuffle: bool) -> NDArray[np.int64]:
    """The order of all graphs in an epoch."""
    if not shuffle:
        return np.arange(count)
    return _rng(seed, epoch).permutation(count)


def _rng(seed: int, epoch: int) -> np.random.Generator:
    return np.random.default_rng([seed % 2**63, epoch])


def sort_windows(order: NDArray[np.int64], sizes: NDArray[np.int64], window: int) -> NDArray[np.int64]:
    """Sort every ``window`` graphs of an order by size."""
    parts = [order[i : i + window] for i in range(0, len(order), window)]
    return np.concatenate([part[np.argsort(sizes[part], kind="stable")] for part in parts])


def cut(
    order: NDArray[np.int64], sizes: NDArray[np.int64], batch_size: int, bounds: Bounds, world_size: int
) -> list[list[int]]:
    """Cut an order into global batches; one closes when it is full, or when its next graph would take a rank
    over the bounds (a single graph above a bound is a batch of its own)."""
    if not bounds:
        return [order[i : i + batch_size].tolist() for i in range(0, len(order), batch_size)]
    batches: list[list[int]] = []
    batch: list[int] = []
    nodes, pairs = [0] * world_size, [0] * world_size
    for graph in order.tolist():
        size = int(sizes[graph])
        rank = len(batch) % world_size
        over = bounds.exceeded(nodes[rank] + size, pairs[rank] + size * size)
        if len(batch) == batch_size or (over and len(batch) >= world_size):
            batches.append(batch)
            batch, rank = [], 0
            nodes, pairs = [0] * world_size, [0] * world_size
        batch.append(graph)
        nodes[rank] += size
        pairs[rank] += size * size
    return [*batches, batch] if batch else batches


def joined(batches: list[list[int]], world_size: int) -> list[list[int]]:
    """Global batches of which every rank gets a part, ``batch[rank::world_size]``: one of fewer graphs than
    ranks joins its neighbour."""
    large: list[list[int]] = []
    for batch in batches:
        if large and len(batch) < world_size:
            large[-1] = large[-1] + batch
        else:
            large.append(batch)
    if len(large) > 1 and len(large[0]) < world_size:
        first = large.pop(0)
        large[0] = first + large[0]
    return large


class BatchOrder(Sampler[list[int]]):
    """Batches of graph numbers for the current epoch, from ``start`` on.

    ``batch_size`` and ``window`` (in batches) count over all ``world_size`` ranks; the bounds hold on each
    rank. Without ``shuffle`` the graphs keep their order, whatever the sampler.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        batch_size: int,
        *,
        seed: int,
        shuffle: bool,
        sampler: str = "full_batch",
        window: int = 8,
        bounds: Bounds | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler must be one of {', '.join(SAMPLERS)}, not {sampler!r}")
        if batch_size < world_size or window < 1 or not 0 <= rank < world_size:
            raise ValueError(
                f"batch_size {batch_size}, window {window}, rank {rank} of {world_size}: out of range"
            )
        if len(sizes) < world_size:
            raise ValueError(f"{len(sizes)} graphs cannot be shared among {world_size} processes")
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.batch_size, self.seed, self.shuffle = batch_size, seed, shuffle
        self.sampler_name, self.window, self.bounds = sampler, window, bounds or Bounds()
        self.rank, self.world_size = rank, world_size
        self.epoch = 0
        self.start = 0
        self._planned: tuple[int, list[list[int]]] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch; another epoch than the present one begins at its first batch."""
        if epoch != self.epoch:
            self.epoch, self.start = epoch, 0

    def batches(self) -> list[list[int]]:
        """This rank's batches of the epoch."""
        if self._planned is None or self._planned[0] != self.epoch:
            whole = self.global_batches(self.world_size)
            self._planned = (self.epoch, [batch[self.rank :: self.world_size] for batch in whole])
        return self._planned[1]

    def global_batches(self, world_size: int) -> list[list[int]]:
        """The epoch's batches over all ranks, if there are so many; each graph is in exactly one of them."""
        order = epoch_order(len(self.sizes), self.seed, self.epoch, self.shuffle)
        bucketed = self.sampler_name == "size_bucket" and self.shuffle
        if bucketed:
            order = sort_windows(order, self.sizes, self.window * self.batch_size)
        batches = cut(order, self.sizes, self.batch_size, self.bounds, world_size)
        if bucketed:
            mixed = _rng(self.seed, self.epoch).spawn(1)[0].permutation(len(batches))
            batches = [batches[i] for i in mixed]
        return joined(batches, world_size)

    def __iter__(self) -> Iterator[list[int]]:
        return iter(self.batches()[self.start :])

    def __len__(self) -> int:
        return len(self.batches())
