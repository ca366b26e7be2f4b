"""Graphs after their transforms, made by this process or by several."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence

import torch
from torch.utils.data import DataLoader, Dataset
from torch_geometric.data import Data

from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import DataError

Transform = Callable[[Data], Data]

_PART = 128  # graphs that a worker hands over at a time


class Prepared:
    """The graphs of a table, each through every transform when it is asked for.

    Args:
        table: the graphs.
        transforms: what is done to each.
        name: of the dataset, for errors.
    """

    def __init__(self, table: GraphTable, transforms: Sequence[Transform], name: str) -> None:
        self.table, self.transforms, self.name = table, transforms, name

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, i: int) -> Data:
        graph = self.table[i]
        for transform in self.transforms:
            try:
                graph = transform(graph)
            except (ValueError, RuntimeError, IndexError) as error:
                raise DataError(
                    f"graph {i} of {self.name} ({graph.num_nodes} nodes): {transform!r}: {error}"
                ) from error
        return graph

    def in_parts(self, num_workers: int = 0) -> Iterator[GraphTable]:
        """All of them in order, some at a time; ``num_workers`` processes make them, or this one."""
        parts = _Parts(self)
        if num_workers == 0:
            yield from (parts.table(number) for number in range(len(parts)))
            return
        own = torch.Generator()  # a loader draws a number; the global generator is for the weights
        for content, graph_class, error in DataLoader(
            parts, batch_size=None, num_workers=num_workers, generator=own
        ):
            if error is not None:
                raise DataError(error)
            yield GraphTable.from_state(torch.load(io.BytesIO(content), weights_only=True), graph_class)


class _Parts(Dataset[tuple[bytes, type[Data], str | None]]):
    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared

    def __len__(self) -> int:
        return -(-len(self.prepared) // _PART)

    def table(self, number: int) -> GraphTable:
        stop = min((number + 1) * _PART, len(self.prepared))
        return GraphTable.from_graphs([self.prepared[i] for i in range(number * _PART, stop)])

    def __getitem__(self, number: int) -> tuple[bytes, type[Data], str | None]:
        """A part as bytes (shared tensors would keep a file open each), or what a user is told."""
        try:
            table = self.table(number)
        except DataError as error:
            return b"", Data, str(error)
        content = io.BytesIO()
        torch.save(table.to_state(), content)
        return content.getvalue(), table.graph_class, None
