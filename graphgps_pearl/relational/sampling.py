r"""Subgraphs around rows of a database as of a time: nothing later than the seed time is in them.

A row u with time stamp :math:`t_u` may be reached from the seed s with seed time :math:`T_s` where

.. math:: t_u \le T_s

and rows without a time stamp always. The result has the form of ``NeighborLoader(disjoint=True)``, which
does the same with ``pyg-lib``; this sampler needs torch and PyG alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.utils import coalesce

EdgeType = tuple[str, str, str]


class _Neighbors(NamedTuple):
    """Edges of one type sorted by target, then by time: a prefix of a target's edges is allowed."""

    source: Tensor  # [E]
    first: Tensor  # [N_target]: each target's first edge
    keys: Tensor  # [E], ascending: (target, rank of the source's time)
    times: Tensor  # [R], ascending: the different times


class TemporalSampler:
    """Subgraphs of all rows within some hops that are not later than the seed's time.

    Args:
        data: the database, with ``time`` ``[N_t]`` (any whole-number unit) for the types that have one. Edges
            are followed from target to source: for both directions it has edges of both.
        num_hops: edges followed from the seed.
        num_neighbors: neighbours followed from a row, of every edge type: the latest ones. 0: all.

    >>> data = HeteroData()
    >>> data["user"].num_nodes = 1
    >>> data["order"].time = torch.tensor([3, 7, 9])
    >>> data["order", "of", "user"].edge_index = torch.tensor([[0, 1, 2], [0, 0, 0]])
    >>> TemporalSampler(data, num_hops=1)("user", torch.tensor([0]), torch.tensor([7]))["order"].n_id
    tensor([1, 0])
    """

    def __init__(self, data: HeteroData, num_hops: int, num_neighbors: int = 128) -> None:
        if num_hops < 1 or num_neighbors < 0:
            raise ValueError(
                f"num_hops = {num_hops}, num_neighbors = {num_neighbors}: at least 1 and at least 0"
            )
        self.data, self.num_hops, self.num_neighbors = data, num_hops, num_neighbors
        times = {name: self._time(name) for name in data.node_types}
        self.sizes = {k: data[k].num_nodes if time is None else len(time) for k, time in times.items()}
        self._neighbors = {kind: self._sorted(kind) for kind in data.edge_types}

    def _time(self, name: str) -> Tensor | None:
        return self.data[name].get("time")

    def _sorted(self, kind: EdgeType) -> _Neighbors:
        source, target = self.data[kind].edge_index.long()
        time = self._time(kind[0])
        if time is None:
            time = torch.zeros(self.sizes[kind[0]], dtype=torch.long)
        times, rank = time.unique(return_inverse=True)
        # Stable: which of several rows of one time are the latest must not depend on later rows.
        keys, order = (target * (len(times) + 1) + rank[source]).sort(stable=True)
        targets = torch.arange(self.sizes[kind[2]])
        first = torch.searchsorted(keys, targets * (len(times) + 1))
        # Below every seed time where the source's table has none.
        known = (
            times if self._time(kind[0]) is not None else times.new_full((1,), torch.iinfo(times.dtype).min)
        )
        return _Neighbors(source[order], first, keys, known)

    def __call__(self, node_type: str, nodes: Tensor, time: Tensor) -> HeteroData:
        """One subgraph for every seed, side by side.

        Args:
            node_type: the seeds' type.
            nodes: the seeds' row numbers, :obj:`[B]`.
            time: the seeds' times, :obj:`[B]`, in the unit of ``data``.

        Returns:
            The attributes of the sampled rows, their row numbers ``n_id`` and the number of their seed
            ``batch``; ``batch_size`` and ``seed_time`` with the seeds, the first B rows of their type;
            the edges that were followed, in both directions.
        """
        self._check(node_type, nodes, time)
        # A sampled row is the number seed * N_t + row.
        known = {name: nodes.new_zeros(0) for name in self.sizes}
        known[node_type] = torch.arange(len(nodes)) * self.sizes[node_type] + nodes
        done = dict.fromkeys(self.sizes, 0)
        edges: dict[EdgeType, list[Tensor]] = {kind: [] for kind in self._neighbors}
        for _ in range(self.num_hops):
            ends = {name: len(rows) for name, rows in known.items()}
            for kind in self._neighbors:
                position = torch.arange(done[kind[2]], ends[kind[2]])
                edge, found = self._follow(kind, known[kind[2]][position], time)
                known[kind[0]], source = _merge(known[kind[0]], found)
                edges[kind].append(torch.stack((source, position[edge])))
            done = ends
        return self._collect(node_type, time, known, edges)

    def _check(self, node_type: str, nodes: Tensor, time: Tensor) -> None:
        if node_type not in self.sizes:
            raise ValueError(f"{node_type!r} is none of the node types {', '.join(self.sizes)}")
        if nodes.shape != time.shape or nodes.dim() != 1:
            raise ValueError(
                f"{list(nodes.shape)} seeds of {node_type} with times of {list(time.shape)}: one each"
            )
        wrong = nodes[(nodes < 0) | (nodes >= self.sizes[node_type])]
        if wrong.numel():
            raise ValueError(f"seed {int(wrong[0])}: {node_type} has rows 0 to {self.sizes[node_type] - 1}")
        own = self._time(node_type)
        if own is not None and bool((late := own[nodes] > time).any()):
            row = int(nodes[late][0])
            raise ValueError(f"row {row} of {node_type} is later than its seed time {int(time[late][0])}")

    def _follow(self, kind: EdgeType, targets: Tensor, time: Tensor) -> tuple[Tensor, Tensor]:
        """The allowed neighbours of sampled rows: for each the target's position, and its own number."""
        source, first, keys, times = self._neighbors[kind]
        seed, row = targets // self.sizes[kind[2]], targets % self.sizes[kind[2]]
        allowed = torch.searchsorted(times, time[seed], right=True)
        last = torch.searchsorted(keys, row * (len(times) + 1) + allowed)
        count = last - first[row]
        if self.num_neighbors:
            count = count.clamp(max=self.num_neighbors)
        edge = torch.arange(len(targets)).repeat_interleave(count)
        step = torch.arange(len(edge)) - (count.cumsum(0) - count)[edge]
        found = source[last[edge] - 1 - step]  # the latest first
        return edge, seed[edge] * self.sizes[kind[0]] + found

    def _collect(
        self, node_type: str, time: Tensor, known: dict[str, Tensor], edges: dict[EdgeType, list[Tensor]]
    ) -> HeteroData:
        result = HeteroData()
        for name, rows in known.items():
            row = rows % self.sizes[name]
            for key, value in self.data[name].items():
                if _has_rows(value, self.sizes[name]):
                    result[name][key] = value[row]
            result[name].n_id, result[name].batch = row, rows // self.sizes[name]
            result[name].num_nodes = len(row)
        result[node_type].batch_size, result[node_type].seed_time = len(time), time
        for kind in edges:
            parts = edges[kind] + [part.flip(0) for part in edges.get(_reverse(kind), [])]
            result[kind].edge_index = coalesce(torch.cat(parts, dim=1))
        return result


def _has_rows(value: Any, size: int) -> bool:
    """Whether an attribute has a row for each of so many nodes: a tensor, or a frame of columns."""
    if isinstance(value, Tensor):
        return value.dim() > 0 and len(value) == size
    return hasattr(value, "num_rows") and value.num_rows == size


def _merge(known: Tensor, found: Tensor) -> tuple[Tensor, Tensor]:
    """Known numbers with the new ones of the found behind them, and the positions of the found."""
    values, inverse = torch.cat((known, found)).unique(return_inverse=True)
    # The first position of each value decides its place, so that what was known stays where it was.
    first = torch.full_like(values, len(inverse)).scatter_reduce(
        0, inverse, torch.arange(len(inverse)), "amin"
    )
    order = first.argsort()
    return values[order], order.argsort()[inverse[len(known) :]]


def _reverse(kind: EdgeType) -> EdgeType:
    """The type of the edges in the other direction, as PyG and RelBench name it."""
    source, name, target = kind
    return target, name.removeprefix("rev_") if name.startswith("rev_") else f"rev_{name}", source
