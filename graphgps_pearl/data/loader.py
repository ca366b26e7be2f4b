"""Batches of graphs in an order that depends on (seed, epoch) alone, resumable in the middle of an epoch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch_geometric.data import Batch, Data
from yacs.config import CfgNode

from graphgps_pearl.data.sampler import BatchOrder, Bounds
from graphgps_pearl.data.subgraphs import Neighbourhoods
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import ConfigError

Prepare = Callable[[Batch], None]


@dataclass(frozen=True)
class Collate:
    """Graphs to a batch, which ``prepare`` may add to; in a worker process if there are any."""

    prepare: Prepare | None = None

    def __call__(self, graphs: list[Data] | Batch) -> Batch:
        """Join the graphs, if they are not a batch already."""
        batch = graphs if isinstance(graphs, Batch) else Batch.from_data_list(graphs)
        if self.prepare is not None:
            self.prepare(batch)
        return batch


@dataclass(frozen=True)
class _InBatches:
    """A table whose graphs torch's loader gets as whole batches."""

    table: GraphTable

    def __len__(self) -> int:
        return len(self.table)

    def __getitems__(self, numbers: Sequence[int]) -> Batch:
        return self.table.batch(numbers)


class GraphLoader:
    """Iterates over one split's batches; ``set_epoch`` chooses the order, ``state_dict`` counts what was
    handed out.

    A resumed loader goes on with the next batch: ``load_state_dict`` sets epoch and position for the next
    iteration, and a later ``set_epoch`` with the same epoch keeps the position. It moves no global random
    state.

    ``len`` is the number of batches in an epoch. With bounds on nodes or pairs this number differs between
    epochs, so ``len`` raises TypeError (training loops then run to the end); :meth:`num_batches` gives the
    present epoch's.
    """

    def __init__(
        self,
        graphs: Sequence[Data],
        order: BatchOrder,
        *,
        num_workers: int = 0,
        pin_memory: bool = False,
        prepare: Prepare | None = None,
    ) -> None:
        self.dataset = graphs
        # Lightning calls `sampler.set_epoch` at the start of every epoch, and looks at `batch_sampler`.
        self.sampler = self.batch_sampler = order
        self.batch_size = order.batch_size
        self._delivered = 0
        self._loader: DataLoader[Data] = DataLoader(
            _InBatches(graphs) if isinstance(graphs, GraphTable) else graphs,  # type: ignore[arg-type]
            batch_sampler=order,
            collate_fn=Collate(prepare),
            num_workers=num_workers,
            persistent_workers=num_workers > 0,
            pin_memory=pin_memory,
            generator=torch.Generator().manual_seed(0),  # else every iteration draws from the global one
        )

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order the next iteration follows."""
        if epoch != self.sampler.epoch:
            self._delivered = 0
        self.sampler.set_epoch(epoch)

    def __iter__(self) -> Iterator[Batch]:
        self._delivered = self.sampler.start
        batches = iter(self._loader)
        self.sampler.start = 0  # the position was for this iteration; the next one begins anew
        for batch in batches:
            self._delivered += 1
            yield batch

    def num_batches(self) -> int:
        """Batches in the present epoch, resumed or not."""
        return len(self.sampler)

    def __len__(self) -> int:
        if self.sampler.bounds:
            raise TypeError("the number of batches differs between epochs; see num_batches()")
        return self.num_batches()

    def state_dict(self) -> dict[str, Any]:
        """The epoch and how many of its batches were handed out."""
        return {"epoch": self.sampler.epoch, "batches": self._delivered}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken."""
        self.sampler.set_epoch(int(state["epoch"]))
        self.sampler.start = self._delivered = int(state["batches"])


def make_loader(
    graphs: Sequence[Data],
    cfg: CfgNode,
    *,
    shuffle: bool,
    rank: int | None = None,
    world_size: int | None = None,
    pin_memory: bool = False,
    prepare: Prepare | None = None,
) -> GraphLoader:
    """A loader over one split as ``cfg.train`` asks; rank and number of processes as torchrun names them.

    ``train.batch_size`` counts graphs over all processes; the order of the graphs does not depend on their
    number. ``pin_memory`` is for batches that go to a GPU; ``prepare`` is called with every batch.
    """
    rank = int(os.environ.get("RANK", "0")) if rank is None else rank
    world_size = int(os.environ.get("WORLD_SIZE", "1")) if world_size is None else world_size
    if cfg.train.batch_size < world_size:
        raise ConfigError(
            f"train.batch_size: {cfg.train.batch_size} is fewer graphs than the {world_size} processes"
        )
    if isinstance(graphs, GraphTable | Neighbourhoods):
        sizes = graphs.num_nodes().tolist()
    else:
        sizes = [int(graph.num_nodes or 0) for graph in graphs]
    if len(sizes) < world_size:
        raise ConfigError(
            f"dataset.split: a split of {len(sizes)} graphs cannot be shared among {world_size} processes"
        )
    order = BatchOrder(
        sizes,
        cfg.train.batch_size,
        seed=cfg.seed,
        shuffle=shuffle,
        sampler=cfg.train.sampler,
        window=cfg.train.sampler_window,
        bounds=Bounds(cfg.train.sampler_max_nodes, cfg.train.sampler_max_pairs),
        rank=rank,
        world_size=world_size,
    )
    return GraphLoader(graphs, order, num_workers=cfg.num_workers, pin_memory=pin_memory, prepare=prepare)
