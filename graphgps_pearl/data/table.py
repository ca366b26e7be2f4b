"""Graphs held collated: one tensor per attribute, and where each graph's part begins.

Whole numbers are kept in the narrowest type that holds them and widened again on access, so that Peptides
(2.3 million atoms with 9 features) takes about 60 MB instead of 360 MB, in memory and on disk.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, overload

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import cumsum

from graphgps_pearl.errors import DataError

_NARROW = (torch.uint8, torch.int8, torch.int16, torch.int32)


@dataclass
class _Column:
    """One attribute of all graphs: graph g's value is ``values`` between ``starts[g]`` and ``starts[g +
    1]``."""

    values: Tensor
    starts: Tensor  # [G + 1]
    dim: int
    dtype: torch.dtype
    scalar: bool  # the graphs' own values have no dimension

    def __post_init__(self) -> None:
        self._starts: list[int] = self.starts.tolist()  # plain numbers: reading one is ten times faster

    def get(self, i: int) -> Tensor:
        # A copy, so that a graph that is changed in place does not change the table.
        value = self._part(i).to(self.dtype, copy=True)
        return value[0] if self.scalar else value

    def joined(self, graphs: Sequence[int]) -> Tensor:
        return torch.cat([self._part(i) for i in graphs], dim=self.dim).to(self.dtype)

    def counts(self, graphs: Sequence[int]) -> Tensor:
        return torch.tensor([self._starts[i + 1] - self._starts[i] for i in graphs])

    def _part(self, i: int) -> Tensor:
        start = self._starts[i]
        return self.values.narrow(self.dim, start, self._starts[i + 1] - start)

    def sizes(self) -> Tensor:
        return self.starts.diff()


def _narrow(values: Tensor) -> Tensor:
    """The same numbers in the narrowest integer type that holds them all, if they are whole."""
    if values.numel() == 0 or values.dtype not in (torch.int64, torch.int32, torch.float32):
        return values
    if values.is_floating_point() and not bool(((values == values.round()) & (values.abs() < 128)).all()):
        return values
    low, high = int(values.min()), int(values.max())
    for dtype in _NARROW:
        info = torch.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return values.to(dtype)
    return values


def _numbers_nodes(key: str) -> bool:
    """Whether PyG takes an attribute for node numbers, which count on through a batch."""
    return "index" in key or key == "face"


def _differ(graph: int, attributes: list[str], other: int, others: list[str]) -> str:
    return f"graph {graph} has attributes {attributes}, graph {other} has {others}; all must have the same"


def _joined(key: str, tensors: Sequence[Tensor], dim: int) -> Tensor:
    try:
        return torch.cat(list(tensors), dim=dim)
    except RuntimeError as error:
        shapes = " and ".join(sorted({str(list(tensor.shape)) for tensor in tensors})[:2])
        raise DataError(f"graph attribute {key!r} has shapes that cannot be joined: {shapes}") from error


def _column(key: str, values: Sequence[Any], first: Data) -> _Column:
    try:
        tensors = [value if isinstance(value, Tensor) else torch.as_tensor(value) for value in values]
    except (TypeError, ValueError, RuntimeError):
        kind = type(values[0]).__name__
        raise DataError(
            f"graph attribute {key!r} is a {kind}, not numbers; leave it out of the graphs"
        ) from None
    scalar = tensors[0].dim() == 0
    dim = 0 if scalar else first.__cat_dim__(key, tensors[0])
    if dim is None:
        raise DataError(f"graph attribute {key!r} has no dimension to join graphs along; it cannot be stored")
    if scalar:
        tensors = [tensor.reshape(1) for tensor in tensors]
    dim %= tensors[0].dim()
    sizes = torch.tensor([0] + [tensor.size(dim) for tensor in tensors])
    joined = _joined(key, tensors, dim)
    return _Column(_narrow(joined), sizes.cumsum(0), dim, joined.dtype, scalar)


class GraphTable(Sequence[Data]):
    """An immutable sequence of graphs in collated form; ``select`` gives a view on some of them.

    ``graph_class`` is what the graphs are made as: a subclass of ``Data`` may bring its own ``__inc__``.
    """

    def __init__(
        self, columns: dict[str, _Column], index: Tensor | None = None, graph_class: type[Data] = Data
    ) -> None:
        self._columns = columns
        self._count = len(next(iter(columns.values())).starts) - 1 if columns else 0
        self._index = index
        self.graph_class = graph_class

    @classmethod
    def from_graphs(cls, graphs: Sequence[Data], start: int = 0) -> GraphTable:
        """Collate graphs that all have the same attributes (tensors or numbers); errors number them from
        ``start``."""
        if not graphs:
            return cls({})
        first = graphs[0]
        keys = sorted(first.to_dict())
        for i, graph in enumerate(graphs):
            if sorted(graph.to_dict()) != keys:
                raise DataError(_differ(start + i, sorted(graph.to_dict()), start, keys))
        columns = {key: _column(key, [graph[key] for graph in graphs], first) for key in keys}
        return cls(columns, graph_class=type(first))

    @classmethod
    def join(cls, tables: Sequence[GraphTable]) -> GraphTable:
        """One whole table after the other."""
        tables = [table for table in tables if len(table)]
        if len(tables) < 2:
            return tables[0] if tables else cls({})
        keys, start = sorted(tables[0]._columns), 0
        for table in tables:
            if sorted(table._columns) != keys:
                raise DataError(_differ(start, sorted(table._columns), 0, keys))
            start += len(table)
        columns = {}
        for key, first in tables[0]._columns.items():
            parts = [table._columns[key] for table in tables]
            values = _joined(key, [part.values for part in parts], first.dim)
            sizes = torch.cat([torch.zeros(1, dtype=torch.long), *(part.sizes() for part in parts)])
            dtype = reduce(torch.promote_types, (part.dtype for part in parts))
            columns[key] = _Column(values, sizes.cumsum(0), first.dim, dtype, first.scalar)
        return cls(columns, graph_class=tables[0].graph_class)

    def __len__(self) -> int:
        return self._count if self._index is None else len(self._index)

    @overload
    def __getitem__(self, i: int) -> Data: ...
    @overload
    def __getitem__(self, i: slice) -> GraphTable: ...
    def __getitem__(self, i: int | slice) -> Data | GraphTable:
        if isinstance(i, slice):
            return self.select(torch.arange(len(self))[i])
        if not -len(self) <= i < len(self):
            raise IndexError(f"graph {i} of {len(self)}")
        row = i % len(self) if self._index is None else int(self._index[i])
        graph = self.graph_class()
        for key, column in self._columns.items():
            value = column.get(row)
            graph[key] = int(value) if key == "num_nodes" else value
        return graph

    def __iter__(self) -> Iterator[Data]:
        return (self[i] for i in range(len(self)))

    def batch(self, numbers: Sequence[int]) -> Batch:
        """The batch of these graphs that PyG makes, in a third of the time."""
        if not self._plain():
            return Batch.from_data_list([self[i] for i in numbers])
        own = range(len(self))
        graphs = [own[i] for i in numbers]
        if self._index is not None:
            graphs = self._index[graphs].tolist()
        given = self._columns.get("num_nodes")
        sizes = self._columns["x"].counts(graphs) if given is None else given.joined(graphs)
        batch, parts, offsets = Batch(_base_cls=self.graph_class), {}, {}
        for key, column in self._columns.items():
            if key == "num_nodes":
                batch._store._num_nodes = sizes.tolist()
                batch.num_nodes = int(sizes.sum())
                continue
            batch[key], counts = column.joined(graphs), column.counts(graphs)
            parts[key] = cumsum(counts)
            offsets[key] = torch.zeros_like(sizes)
            if _numbers_nodes(key):
                offsets[key] = cumsum(sizes[:-1])
                shape = [-1 if i == column.dim else 1 for i in range(batch[key].dim())]
                batch[key] += offsets[key].repeat_interleave(counts).view(shape)
        batch.batch = torch.arange(len(graphs)).repeat_interleave(sizes)
        batch.ptr = cumsum(sizes)
        batch._num_graphs, batch._slice_dict, batch._inc_dict = len(graphs), parts, offsets
        return batch

    def _plain(self) -> bool:
        """Whether PyG has its usual rules for all attributes, and reads the number of nodes where we do."""
        usual = (self.graph_class.__inc__, self.graph_class.__cat_dim__) == (Data.__inc__, Data.__cat_dim__)
        counted = not {"num_nodes", "x"}.isdisjoint(self._columns)
        special = any(
            "batch" in key or key == "ptr" or (_numbers_nodes(key) and column.dtype == torch.bool)
            for key, column in self._columns.items()
        )
        return usual and counted and not special

    def __repr__(self) -> str:
        return f"GraphTable({len(self)} graphs: {', '.join(sorted(self._columns))})"

    def select(self, index: Tensor | Sequence[int]) -> GraphTable:
        """A view on the graphs numbered ``index``, in that order."""
        chosen = torch.as_tensor(index, dtype=torch.long)
        if self._index is not None:
            chosen = self._index[chosen]
        return GraphTable(self._columns, chosen, self.graph_class)

    def _per_graph(self, counts: Tensor) -> Tensor:
        return counts if self._index is None else counts[self._index]

    def num_nodes(self) -> Tensor:
        """Nodes of every graph [len(self)], without making the graphs."""
        if "num_nodes" in self._columns:
            return self._per_graph(self._columns["num_nodes"].values.long())
        return self._per_graph(self._columns["x"].sizes())

    def num_edges(self) -> Tensor:
        """Directed edges of every graph [len(self)]."""
        return self._per_graph(self._columns["edge_index"].sizes())

    def targets(self) -> Tensor:
        """All y in order: [len(self), dim_out] floats, or [len(self)] classes; of node targets, one row a
        node."""
        column = self._columns["y"]
        values = column.values.to(column.dtype)
        if self._index is None:
            return values
        sizes = column.sizes()[self._index]
        first = (column.starts[self._index] - sizes.cumsum(0) + sizes).repeat_interleave(sizes)
        return values[first + torch.arange(len(first))]

    def with_targets(self, change: Callable[[Tensor], Tensor]) -> GraphTable:
        """The same graphs with other targets y of the same shape; everything else is shared."""
        column = self._columns["y"]
        changed = dataclasses.replace(column, values=change(column.values.to(column.dtype)))
        return GraphTable({**self._columns, "y": changed}, self._index, self.graph_class)

    def column(self, key: str) -> Tensor | None:
        """One attribute of all graphs, joined, as it is stored; None where the graphs have none."""
        return self._columns[key].values if key in self._columns else None

    def is_real(self, key: str) -> bool:
        """Whether the graphs have an attribute as real numbers, which may be stored as whole ones."""
        return self._columns[key].dtype.is_floating_point

    def owner(self, key: str, position: int) -> int:
        """The graph that an attribute's part at ``position`` of the joined dimension belongs to."""
        return int(torch.searchsorted(self._columns[key].starts, position, right=True)) - 1

    def content(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Every attribute of all graphs, joined, in its own type, with the graphs' sizes: independent of how
        they are stored."""
        return {key: (c.values.to(c.dtype).contiguous(), c.sizes()) for key, c in self._columns.items()}

    def num_bytes(self) -> int:
        """What the graphs take, in memory and on disk."""
        return sum(column.values.nbytes + _narrow(column.starts).nbytes for column in self._columns.values())

    def to_state(self) -> dict[str, Any]:
        """Plain tensors, strings and numbers, as ``torch.save`` and ``torch.load(weights_only=True)`` like
        them."""
        return {
            key: {
                "values": column.values.contiguous(),
                "starts": _narrow(column.starts),
                "dim": column.dim,
                "dtype": str(column.dtype).removeprefix("torch."),
                "scalar": column.scalar,
            }
            for key, column in self._columns.items()
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], graph_class: type[Data] = Data) -> GraphTable:
        """Inverse of :meth:`to_state`, which cannot carry a class."""
        columns = {}
        for key, saved in state.items():
            dtype = getattr(torch, saved["dtype"], None)
            if not isinstance(dtype, torch.dtype):
                raise ValueError(f"unknown dtype {saved['dtype']!r}")
            columns[key] = _Column(
                saved["values"], saved["starts"].long(), saved["dim"], dtype, saved["scalar"]
            )
        return cls(columns, graph_class=graph_class)
