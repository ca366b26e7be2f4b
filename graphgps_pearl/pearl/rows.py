r"""The rows that :math:`\Phi` works on, one for each (node, sample), and how they are connected.

A :class:`Rows` object has what a layer needs: :math:`S^k X`, :math:`A X` and each row's own value. The same
layers then run on R-PEARL's samples, on B-PEARL's pairs, or on fewer rows that stand for several pairs each
(with multiplicities, and one :class:`Rows` object per layer).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from graphgps_pearl.pearl.checks import check_range
from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.operators import SparseMatrix, graph_shift_operator, powers_grow, shifted, taps


class Rows(Protocol):
    """What a layer of :math:`\\Phi` reads; R rows."""

    @property
    def multiplicity(self) -> Tensor | None:
        """How many (node, sample) rows each row stands for, :obj:`[R]`; None: one each."""

    @property
    def graph(self) -> Tensor:
        """The graph of each row, :obj:`[R]`."""

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        """:math:`(X, S X, \\dots, S^{K-1} X)`, :obj:`[R, K, F]`."""

    def neighbours(self, x: Tensor) -> Tensor:
        """:math:`A X`, :obj:`[R, F]`."""

    def own(self, x: Tensor) -> Tensor:
        """Each row's own value among the rows of the layer before, :obj:`[R, F]`."""

    @property
    def parent(self) -> Tensor | None:
        """Gather index of :meth:`own`, :obj:`[R]`; None: the rows are the same."""

    @property
    def matrix(self) -> SparseMatrix:
        """:math:`A`, to multiply rows :obj:`[R, F]` or, for R-PEARL, nodes :obj:`[N, M F]`."""


class CachedTaps:
    """Rows that cache the taps of the last signal: the layer and the diagonal or moments read the same."""

    _cached: tuple[Tensor, Tensor] | None = None
    _powers_grow = True  # whether taps may become too large; a device has to wait for the answer

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        """:math:`(X, S X, \\dots, S^{K-1} X)`, :obj:`[R, K, F]`."""
        if x.requires_grad:  # the taps hold the rows by their graph: caching would make a reference cycle
            return self._checked_taps(x, num_taps)
        if self._cached is None or self._cached[0] is not x or self._cached[1].size(1) != num_taps:
            self._cached = x, self._checked_taps(x, num_taps)
        return self._cached[1]

    def _checked_taps(self, x: Tensor, num_taps: int) -> Tensor:
        found = self._make_taps(x, num_taps)
        if num_taps > 1 and self._powers_grow:
            check_range(found)
        return found

    def _make_taps(self, x: Tensor, num_taps: int) -> Tensor:
        raise NotImplementedError


class Operators:
    """:math:`S` and :math:`A` of the nodes, :obj:`[N, N]`, each built when first used."""

    def __init__(self, graphs: Graphs, gso: str, dtype: torch.dtype) -> None:
        self.graphs, self.gso, self.dtype = graphs, gso, dtype

    @cached_property
    def shift(self) -> SparseMatrix:
        """:math:`S`."""
        return shifted(self.adjacency, self.gso)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """:math:`A`."""
        g = self.graphs
        return graph_shift_operator("adjacency", g.edge_index, g.num_nodes, self.dtype, g.edge_weight)

    def __getstate__(self) -> dict[str, Any]:
        """What is stored has the matrices that the forward and the backward pass will need."""
        _ = self.adjacency.t(), self.shift
        return self.__dict__


class SampleRows(CachedTaps):
    """R-PEARL's rows (node, sample), node by node, M samples for every node.

    Viewed as :obj:`[N, M * F]`, all samples go through one sparse product.
    """

    multiplicity = parent = None

    def __init__(self, operators: Operators, num_samples: int) -> None:
        self.operators, self.graphs, self.num_samples = operators, operators.graphs, num_samples
        self.num_graphs, self._powers_grow = self.graphs.num_graphs, powers_grow(operators.gso)

    @property
    def graph(self) -> Tensor:
        """The graph of each row, :obj:`[N * M]`."""
        return self.graphs.graph.repeat_interleave(self.num_samples)

    def _make_taps(self, x: Tensor, num_taps: int) -> Tensor:
        return torch.stack(taps(x, lambda power: self._apply(self.operators.shift, power), num_taps), dim=1)

    @property
    def matrix(self) -> SparseMatrix:
        """:math:`A` of the nodes."""
        return self.operators.adjacency

    def neighbours(self, x: Tensor) -> Tensor:
        """:math:`A X`."""
        return self._apply(self.matrix, x)

    def own(self, x: Tensor) -> Tensor:
        """``x``: all layers have the same rows."""
        return x

    def _apply(self, matrix: SparseMatrix, x: Tensor) -> Tensor:
        width = self.num_samples * x.size(1)
        return (matrix @ x.reshape(self.graphs.num_nodes, width)).view(x.shape)


class PairRows(CachedTaps):
    r"""B-PEARL's rows (node :math:`v`, basis vector :math:`m`): all pairs of each graph, without padding.

    The pairs of a node are contiguous, in the order of :math:`m`; R = :math:`\sum_g n_g^2`. The operators act
    on :math:`v` for each :math:`m` separately.
    """

    multiplicity = parent = None

    def __init__(self, operators: Operators) -> None:
        self.operators, self.graphs = operators, operators.graphs
        self.num_graphs, self._powers_grow = self.graphs.num_graphs, powers_grow(operators.gso)
        self.size = self.graphs.node_sizes  # [N] pairs of each node
        self.bounds = torch.cat([self.size.new_zeros(1), self.size.cumsum(0)])  # [N + 1] row of (v, 0), and R
        self.num_rows = self.graphs.num_pairs
        nodes = torch.arange(self.graphs.num_nodes, device=self.size.device)
        self.node = nodes.repeat_interleave(self.size, output_size=self.num_rows)  # [R] the v of each row

    @property
    def start(self) -> Tensor:
        """The row of (v, 0) for each node, :obj:`[N]`."""
        return self.bounds[:-1]

    @property
    def layers(self) -> PairRows:
        """The rows of every layer: these."""
        return self

    @property
    def first(self) -> PairRows:
        """The rows of the first layer."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """What is stored has all that the layers and the pooling will ask for."""
        _ = self.matrix, self.pool.t(), self.signal, self.diagonal
        return self.__dict__

    @property
    def graph(self) -> Tensor:
        """The graph of each row, :obj:`[R]`."""
        return self.graphs.graph[self.node]

    @cached_property
    def diagonal(self) -> Tensor:
        """The row of the pair (v, v) for each node v, :obj:`[N]`."""
        return self.start + self.graphs.position

    @cached_property
    def pair_row(self) -> Tensor:
        """The row of every pair: its own."""
        return torch.arange(self.num_rows, device=self.size.device)

    @cached_property
    def signal(self) -> Tensor:
        """The signals :math:`e_m[v]`: 1 where v = m and 0 elsewhere, :obj:`[R, 1]`."""
        signal = torch.zeros(self.num_rows, 1, dtype=self.operators.dtype, device=self.size.device)
        signal[self.diagonal] = 1
        return signal

    @cached_property
    def pool(self) -> SparseMatrix:
        """Sums the pairs of each node, :obj:`[N, R]`."""
        value = torch.ones(self.num_rows, dtype=self.operators.dtype, device=self.bounds.device)
        node, columns = self.node, self.graphs.num_nodes
        rows = torch.arange(self.num_rows + 1, device=node.device)
        return SparseMatrix(
            *(self.bounds, self.pair_row, value, self.num_rows),
            transpose=lambda: SparseMatrix(rows, node, value, columns),
        )

    @property
    def entry_pool(self) -> SparseMatrix:
        """Sums the :meth:`entries` of each node."""
        return self.pool

    def entries(self, x: Tensor) -> Tensor:
        """The rows of every node: its pairs."""
        return x

    def _make_taps(self, x: Tensor, num_taps: int) -> Tensor:
        """The pairs of a node side by side, padded, go through the operator of the nodes: a sparse product of
        rows with one column is slow.
        """
        if num_taps < 2:
            return x.unsqueeze(1)
        num_nodes, longest = self.graphs.num_nodes, max(self.graphs.host_sizes, default=0)
        index = self.pair_row - self.start[self.node] + longest * self.node  # [R] in the padded layout
        padded = x.new_zeros(num_nodes * longest, x.size(1)).index_copy(0, index, x)
        shift = self.operators.shift
        powers = taps(padded.view(num_nodes, longest * x.size(1)), lambda power: shift @ power, num_taps)
        return torch.stack([power.view(padded.shape) for power in powers], dim=1).index_select(0, index)

    def tap_diagonal(self, num_taps: int) -> Tensor:
        """The taps of every pair (v, v), :obj:`[N, K]`."""
        return self.taps(self.signal, num_taps)[self.diagonal].squeeze(2)

    @cached_property
    def matrix(self) -> SparseMatrix:
        """:math:`A` of the pairs."""
        return _lift(self.operators.adjacency, self.start, self.node)

    def neighbours(self, x: Tensor) -> Tensor:
        """:math:`A X`."""
        return self.matrix @ x

    def own(self, x: Tensor) -> Tensor:
        """``x``: all layers have the same rows."""
        return x


def _lift(matrix: SparseMatrix, start: Tensor, node: Tensor) -> SparseMatrix:
    """Entry (v, u) of the nodes' matrix becomes an entry ((v, m), (u, m)) for every m.

    ``start`` is the row of (v, 0) for each node, ``node`` the v of each row. (A function and not a method:
    the matrix would keep the rows alive through its transpose, and they keep the matrix alive.)
    """
    entries = matrix.crow.diff()[node]  # [R]
    crow = torch.cat([entries.new_zeros(1), entries.cumsum(0)])
    rows = torch.arange(node.numel(), device=crow.device)
    row = rows.repeat_interleave(entries)
    entry = matrix.crow[node[row]] + torch.arange(row.numel(), device=crow.device) - crow[row]
    col = start[matrix.col[entry]] + row - start[node[row]]
    return SparseMatrix(
        crow,
        col,
        matrix.value[entry],
        node.numel(),
        transpose=lambda: _lift(matrix.t(), start, node),
        symmetric=_is_symmetric(matrix),
    )


def _is_symmetric(matrix: SparseMatrix) -> bool:
    """Whether a matrix is known to equal its transpose, entry by entry in the same order."""
    if matrix.value.device.type != "cpu":  # the host would have to wait for the answer
        return False
    other = matrix.t()
    return all(
        torch.equal(a, b)
        for a, b in ((matrix.crow, other.crow), (matrix.col, other.col), (matrix.value, other.value))
    )
