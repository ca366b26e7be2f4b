r"""B-PEARL's rows with equal ones merged: one row for each colour of a plan.

Layer :math:`l` has its own rows. A row's value is made of rows of the layer before,

.. math:: y = (1 + \epsilon)\, x[parent] + T_l\, x

with :math:`T_l` the small sparse matrix of neighbour counts. Multiplicities go into the normalisation, and
the statistics over m weigh every row by its count at a node.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.kernels.colours import Level
from graphgps_pearl.pearl.kernels.plan import Plan
from graphgps_pearl.pearl.operators import SHIFTS, SparseMatrix, degree_power
from graphgps_pearl.pearl.rows import CachedTaps


class QuotientRows:
    """All the rows of a plan: those of each layer, and how the last ones are pooled."""

    def __init__(self, plan: Plan, gso: str, dtype: torch.dtype, graphs: Graphs) -> None:
        self.plan, self.dtype, self.size = plan, dtype, graphs.node_sizes
        self._graph, self._num_graphs, self._num_pairs = graphs.graph, graphs.num_graphs, graphs.num_pairs
        node = torch.arange(graphs.num_nodes, device=self.size.device)
        self.node = node.repeat_interleave(plan.pool_size)  # [Z]
        self.row = plan.pool_row.long()  # [Z]
        self.count = plan.pool_count.to(dtype)  # [Z]
        self.diagonal = plan.diagonal  # [N]
        self._matrices = self._all_counts()
        self.layers = self._layers(gso)

    def _all_counts(self) -> list[SparseMatrix]:
        """The matrix of every round; rounds that share a level share it."""
        made: dict[int, SparseMatrix] = {}
        matrices = []
        for r, level in enumerate(self.plan.levels):
            if id(level) not in made:
                made[id(level)] = _counts(level, self._num_rows(r), self.dtype)
            matrices.append(made[id(level)])
        return matrices

    @cached_property
    def pool(self) -> SparseMatrix:
        """How often each row occurs at each node, :obj:`[N, R]`."""
        crow = _pointer(self.plan.pool_size)
        return SparseMatrix(crow, self.row, self.count, self._num_rows(len(self.plan.levels)))

    @cached_property
    def entry_pool(self) -> SparseMatrix:
        """Sums a node's :meth:`entries`, each as often as it occurs, :obj:`[N, Z]`."""
        entry = torch.arange(self.row.numel(), device=self.row.device)
        return SparseMatrix(_pointer(self.plan.pool_size), entry, self.count, entry.numel())

    def entries(self, x: Tensor) -> Tensor:
        """The different rows of every node, one node's after the other's, :obj:`[Z, D]`."""
        return x.index_select(0, self.row)

    @cached_property
    def signal(self) -> Tensor:
        """The signal of the rows of round 0, :obj:`[R, 1]`."""
        return self.plan.signal.to(self.dtype).unsqueeze(1)

    def tap_diagonal(self, num_taps: int) -> Tensor:
        """The taps of every pair (v, v), :obj:`[N, K]`."""
        return self.first.taps(self.signal, num_taps)[self._first_diagonal].squeeze(2)

    @cached_property
    def _first_diagonal(self) -> Tensor:
        """The row of every pair (v, v) in the generalised layer, :obj:`[N]`."""
        row = self.diagonal
        for level in reversed(self.plan.levels[max(self.plan.num_taps - 1, 0) :]):
            row = level.parent[row]
        return row

    @property
    def first(self) -> TapRows | LayerRows:
        """The rows of the first layer."""
        return self.layers[0]

    def __getstate__(self) -> dict[str, Any]:
        """What is stored has all that the layers and the pooling will ask for."""
        _ = self.pool.t(), self.signal, self._first_diagonal
        for layer in self.layers:
            _ = layer.share
            if isinstance(layer, LayerRows):
                layer.matrix.t()
        return self.__dict__

    @property
    def num_rows(self) -> int:
        """Rows of the last round."""
        return self._num_rows(len(self.plan.levels))

    @property
    def pair_row(self) -> Tensor:
        """The row of every pair, node by node in the order of m."""
        assert self.plan.pair_row is not None
        return self.plan.pair_row

    def _num_rows(self, round_: int) -> int:
        return self.plan.levels[round_ - 1].parent.numel() if round_ else self.plan.signal.numel()

    def _multiplicities(self) -> list[Tensor]:
        """The multiplicities of the rows of every round: those of a row's descendants, summed."""
        plan = self.plan
        last = torch.zeros(self._num_rows(len(plan.levels)), dtype=torch.long, device=plan.signal.device)
        multiplicities = [last.index_add_(0, self.row, plan.pool_count.long())]
        if not plan.refined:  # the rows of all rounds are the same
            return multiplicities * (len(plan.levels) + 1)
        for round_ in range(len(plan.levels), 0, -1):
            parent = plan.levels[round_ - 1].parent.long()
            multiplicities.append(
                last.new_zeros(self._num_rows(round_ - 1)).index_add_(0, parent, multiplicities[-1])
            )
        return multiplicities[::-1]

    def _graphs(self) -> list[Tensor | None]:
        """The graphs of the rows of every round, where rows of different graphs are kept apart."""
        levels = self.plan.levels
        if not self.plan.separate:
            return [None] * (len(levels) + 1)
        last = torch.zeros(self._num_rows(len(levels)), dtype=torch.long, device=self._graph.device)
        last[self.row] = self._graph[self.node]
        graphs = [last]
        for round_ in range(len(levels), 0, -1):
            before = last.new_zeros(self._num_rows(round_ - 1))
            before[levels[round_ - 1].parent.long()] = graphs[-1]
            graphs.append(before)
        return list(graphs[::-1])

    def _layers(self, gso: str) -> list[TapRows | LayerRows]:
        plan = self.plan
        weights = [
            (multiplicity, self._num_pairs, self.dtype, graph, self._num_graphs)
            for multiplicity, graph in zip(self._multiplicities(), self._graphs(), strict=True)
        ]
        rounds = max(plan.num_taps - 1, 0)
        layers: list[TapRows | LayerRows] = []
        if plan.num_taps:
            steps = list(zip(plan.levels[:rounds], self._matrices[:rounds], strict=True))
            layers.append(TapRows(steps, plan.out_degree, gso, *weights[rounds], refined=plan.refined))
        layers += [
            LayerRows(
                plan.levels[r].parent.long() if plan.refined else None, self._matrices[r], *weights[r + 1]
            )
            for r in range(rounds, len(plan.levels))
        ]
        return layers


class Weighted:
    """Rows with multiplicities, which stand for ``total`` rows."""

    def __init__(
        self, multiplicity: Tensor, total: int, dtype: torch.dtype, graph: Tensor | None, num_graphs: int
    ) -> None:
        self.multiplicity, self.total, self.num_graphs = multiplicity, total, num_graphs
        self._dtype, self._graph = dtype, graph

    @cached_property
    def share(self) -> Tensor:
        """The share of each row in all rows that they stand for, :obj:`[R]`."""
        return self.multiplicity.to(self._dtype) / self.total

    @property
    def graph(self) -> Tensor:
        """The graph of each row."""
        if self._graph is None:
            raise ValueError("rows of different graphs are merged: a row has no graph of its own")
        return self._graph


class LayerRows(Weighted):
    """The rows of a GIN layer."""

    def __init__(self, parent: Tensor | None, matrix: SparseMatrix, *weights: Any) -> None:
        super().__init__(*weights)
        self.parent, self.matrix = parent, matrix

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        """A generalised layer comes first or not at all."""
        raise NotImplementedError("a generalised layer behind another layer works on all pairs")

    def neighbours(self, x: Tensor) -> Tensor:
        """:math:`T x`."""
        return self.matrix @ x

    def own(self, x: Tensor) -> Tensor:
        """The value of each row's parent; ``x`` where the rows of all layers are the same."""
        return x if self.parent is None else x.index_select(0, self.parent)


class TapRows(CachedTaps, Weighted):
    """The rows of the generalised layer, whose taps walk through the first rounds."""

    parent = None

    def __init__(
        self,
        steps: list[tuple[Level, SparseMatrix]],
        out_degree: Tensor,
        gso: str,
        *weights: Any,
        refined: bool = True,
    ) -> None:
        super().__init__(*weights)
        self.steps, self.out_degree, self.gso, self.refined = steps, out_degree, gso, refined

    @torch.no_grad()
    def _make_taps(self, x: Tensor, num_taps: int) -> Tensor:
        """The taps of the signal, :obj:`[R, K, 1]`; each power is one round further, with rows of its own."""
        powers, out_degree = [x], self.out_degree.to(x.dtype).unsqueeze(1)
        for level, matrix in self.steps:
            parent, in_degree = level.parent.long(), level.degree.to(x.dtype).unsqueeze(1)
            own = powers[-1].index_select(0, parent) if self.refined else powers[-1]
            powers.append(_shift(self.gso, matrix, powers[-1], own, in_degree, out_degree))
            out_degree = out_degree.index_select(0, parent) if self.refined else out_degree
        if not self.refined:
            return torch.stack(powers, dim=1)
        row = torch.arange(len(powers[-1]), device=x.device)  # of the last round, followed back
        columns = [powers[-1]]
        for (level, _), power in zip(reversed(self.steps), reversed(powers[:-1]), strict=True):
            row = level.parent.long().index_select(0, row)
            columns.append(power.index_select(0, row))
        return torch.stack(columns[::-1], dim=1)

    @property
    def matrix(self) -> SparseMatrix:
        """The generalised layer has taps only."""
        raise NotImplementedError("the rows of the generalised layer have taps only")

    def neighbours(self, x: Tensor) -> Tensor:
        """The generalised layer has taps only."""
        return self.matrix @ x

    def own(self, x: Tensor) -> Tensor:
        """The signal of each row, which a skip adds where the layer is one column wide."""
        for level, _ in self.steps if self.refined else []:
            x = x.index_select(0, level.parent.long())
        return x


def _shift(
    gso: str, matrix: SparseMatrix, x: Tensor, own: Tensor, in_degree: Tensor, out_degree: Tensor
) -> Tensor:
    """:math:`S x` for rows with values ``own`` whose neighbours' values are ``x``."""
    shift = SHIFTS[gso]
    moved = shift.sign * (matrix @ (x * degree_power(out_degree, shift.b))) * degree_power(in_degree, shift.a)
    if shift.diagonal == "zero":
        return moved
    return moved + (own if shift.diagonal == "identity" else in_degree * own)


def _counts(level: Level, num_cols: int, dtype: torch.dtype) -> SparseMatrix:
    value = torch.ones(level.neighbour.numel(), dtype=dtype, device=level.neighbour.device)
    return SparseMatrix(_pointer(level.degree), level.neighbour.long(), value, num_cols)


def _pointer(size: Tensor) -> Tensor:
    return torch.cat([size.new_zeros(1, dtype=torch.long), size.long().cumsum(0)])
