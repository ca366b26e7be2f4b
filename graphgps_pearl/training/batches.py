"""The training loader as Lightning has to see it."""

from __future__ import annotations

from collections.abc import Iterator

from torch_geometric.data import Batch

from graphgps_pearl.data import GraphLoader


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
