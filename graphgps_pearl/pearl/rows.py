r""":math:`\Phi` works on rows of features, one row for each (node, sample); this file says how rows touch.

A :class:`Rows` object offers what a layer may do with them: take taps, sum over the neighbours, keep a row's
own value. :math:`\Phi` knows nothing else, so the same layers run on R-PEARL's rows, on B-PEARL's
pairs, or on any smaller set of rows that stands for them (then with multiplicities in ``weight``, and with
one :class:`Rows` for each layer).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.gso import graph_shift_operator
from graphgps_pearl.pearl.sparse import SparseMatrix


class Rows(Protocol):
    """What a layer of :math:`\\Phi` may ask of the rows it works on."""

    @property
    def weight(self) -> Tensor | None:
        """How many (node, sample) rows each row stands for, :obj:`[R]`; none: one each."""

    @property
    def graph(self) -> Tensor:
        """The graph of each row, :obj:`[R]`."""

    @property
    def num_graphs(self) -> int:
        """How many graphs there are."""

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        """:math:`(x, S x, \\dots, S^{K-1} x)` side by side."""

    def neighbours(self, x: Tensor) -> Tensor:
        """:math:`A x`."""

    def keep(self, x: Tensor) -> Tensor:
        """Each row's own value, for the next layer's rows."""

    @property
    def parent(self) -> Tensor | None:
        """The row one layer earlier whose value :meth:`keep` gives, :obj:`[R]`; none: each row's own."""

    @property
    def matrix(self) -> SparseMatrix:
        """:math:`A`, of rows :obj:`[R, F]` or of all the samples of a node side by side."""


def taps(x: Tensor, shift: Callable[[Tensor], Tensor], num_taps: int) -> Tensor:
    r"""The taps :math:`(X, S X, \dots, S^{K-1} X)` side by side, :obj:`[R, K * F]`; no power of S is formed.

    >>> taps(torch.tensor([[1.0], [2.0]]), lambda x: 10 * x, num_taps=3).tolist()
    [[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]]
    """
    powers = [x]
    for _ in range(num_taps - 1):
        powers.append(shift(powers[-1]))
    return torch.cat(powers, dim=1)


class KeptTaps:
    """Rows that keep the taps of the last signal: the layer and their diagonal want the same.

    Taps with a way back are not kept: their graph holds the rows, and the rows would hold it.
    """

    _kept: tuple[Tensor, int, Tensor] | None = None

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        """:math:`(x, S x, \\dots, S^{K-1} x)` side by side."""
        if x.requires_grad:
            return self._make_taps(x, num_taps)
        if self._kept is None or self._kept[0] is not x or self._kept[1] != num_taps:
            self._kept = x, num_taps, self._make_taps(x, num_taps)
        return self._kept[2]

    def _make_taps(self, x: Tensor, num_taps: int) -> Tensor:
        raise NotImplementedError


class NodeOperators:
    """:math:`S` and :math:`A` of the nodes, :obj:`[N, N]`, each made when first asked for."""

    def __init__(self, graphs: Graphs, gso: str, dtype: torch.dtype) -> None:
        self.graphs, self.gso, self.dtype = graphs, gso, dtype

    @cached_property
    def shift(self) -> SparseMatrix:
        """:math:`S`."""
        return self.adjacency if self.gso == "adjacency" else self._make(self.gso)

    @cached_property
    def adjacency(self) -> SparseMatrix:
        """:math:`A`."""
        return self._make("adjacency")

    def _make(self, gso: str) -> SparseMatrix:
        return graph_shift_operator(gso, self.graphs.edge_index, self.graphs.num_nodes, self.dtype)


class SampleRows:
    """R-PEARL: rows (node, sample), node by node, every node with the same number of samples.

    As a matrix :obj:`[N, M * F]` all the samples go through one sparse product.
    """

    weight = parent = None

    def __init__(self, operators: NodeOperators, num_samples: int) -> None:
        self.operators, self.graphs, self.num_samples = operators, operators.graphs, num_samples

    @property
    def graph(self) -> Tensor:
        """The graph of each row, :obj:`[N * M]`."""
        return self.graphs.graph.repeat_interleave(self.num_samples)

    @property
    def num_graphs(self) -> int:
        """How many graphs there are."""
        return self.graphs.sizes.numel()

    def shift(self, x: Tensor) -> Tensor:
        """:math:`S x`."""
        return self._apply(self.operators.shift, x)

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        """:math:`(x, S x, \\dots, S^{K-1} x)` side by side."""
        return taps(x, self.shift, num_taps)

    @property
    def matrix(self) -> SparseMatrix:
        """:math:`A` of the nodes."""
        return self.operators.adjacency

    def neighbours(self, x: Tensor) -> Tensor:
        """:math:`A x`."""
        return self._apply(self.matrix, x)

    def keep(self, x: Tensor) -> Tensor:
        """Every row goes on as it is."""
        return x

    def _apply(self, matrix: SparseMatrix, x: Tensor) -> Tensor:
        width = self.num_samples * x.size(1)
        return (matrix @ x.reshape(self.graphs.num_nodes, width)).view(x.shape)


class PairRows(KeptTaps):
    r"""B-PEARL: rows (node :math:`v`, basis vector :math:`m`), all pairs inside each graph, no padding.

    The pairs of a node stand together, in the order of :math:`m`; :math:`\sum_g n_g^2` rows in all. The
    operators act on :math:`v` for each :math:`m` apart, so their matrices are the nodes' own, repeated.
    """

    weight = parent = None

    def __init__(self, operators: NodeOperators) -> None:
        self.operators, self.graphs = operators, operators.graphs
        self.size = self.graphs.node_sizes  # [N] pairs of each node
        self.start = self.size.cumsum(0) - self.size  # [N] row of (v, 0)
        self.num_rows = int(self.size.sum())
        nodes = torch.arange(self.graphs.num_nodes, device=self.size.device)
        self.node = nodes.repeat_interleave(self.size, output_size=self.num_rows)  # [R] the v of each row

    @cached_property
    def pool(self) -> SparseMatrix:
        """Sums the pairs of each node, :obj:`[N, R]`."""
        crow = torch.cat([self.start, self.start.new_tensor([self.num_rows])])
        row = torch.arange(self.num_rows, device=crow.device)
        return SparseMatrix(crow, row, torch.ones_like(row, dtype=self.operators.dtype), self.num_rows)

    @property
    def entry_pool(self) -> SparseMatrix:
        """Sums the :meth:`entries` of each node."""
        return self.pool

    def entries(self, x: Tensor) -> Tensor:
        """The rows of every node: its pairs."""
        return x

    @property
    def graph(self) -> Tensor:
        """The graph of each row, :obj:`[R]`."""
        return self.graphs.graph[self.node]

    @property
    def num_graphs(self) -> int:
        """How many graphs there are."""
        return self.graphs.sizes.numel()

    @property
    def diagonal(self) -> Tensor:
        """The row of the pair (v, v) for each node v, :obj:`[N]`."""
        return self.start + self.graphs.position

    @cached_property
    def signal(self) -> Tensor:
        """The signals: :math:`e_m[v]`, one where v = m and zero elsewhere, :obj:`[R, 1]`."""
        signal = torch.zeros(self.num_rows, 1, dtype=self.operators.dtype, device=self.size.device)
        signal[self.diagonal] = 1
        return signal

    @property
    def pair_row(self) -> Tensor:
        """The row of every pair: each has its own."""
        return torch.arange(self.num_rows, device=self.size.device)

    def tap_diagonal(self, num_taps: int) -> Tensor:
        """The taps of every pair (v, v), :obj:`[N, K]`."""
        return self.taps(self.signal, num_taps)[self.diagonal]

    def _make_taps(self, x: Tensor, num_taps: int) -> Tensor:
        """The rows of a node side by side, padded, go through the nodes' own operator: rows of one column are
        too narrow for a product of their own.
        """
        if num_taps < 2:
            return x
        num_nodes, longest = self.graphs.num_nodes, int(self.size.max()) if self.num_rows else 0
        place = torch.arange(self.num_rows, device=x.device) - self.start[self.node] + longest * self.node
        padded = x.new_zeros(num_nodes * longest, x.size(1)).index_copy(0, place, x)
        powers = [padded]
        for _ in range(num_taps - 1):
            side_by_side = powers[-1].view(num_nodes, longest * x.size(1))
            powers.append((self.operators.shift @ side_by_side).view(padded.shape))
        return torch.stack(powers, dim=1).index_select(0, place).flatten(1)

    def neighbours(self, x: Tensor) -> Tensor:
        """:math:`A x`."""
        return self.matrix @ x

    def keep(self, x: Tensor) -> Tensor:
        """Every row goes on as it is."""
        return x

    @cached_property
    def matrix(self) -> SparseMatrix:
        """:math:`A` of the pairs."""
        return _lift(self.operators.adjacency, self.start, self.node)


def _lift(matrix: SparseMatrix, start: Tensor, node: Tensor) -> SparseMatrix:
    """Entry (v, u) of the nodes' matrix becomes an entry ((v, m), (u, m)) for every m.

    ``start`` is the row of (v, 0) for each node, ``node`` the v of each row. (No method of the rows: the
    matrix would hold them through its transpose, and they hold the matrix.)
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
    """Whether a matrix is its own transpose, entry by entry in the same order."""
    other = matrix.t()
    return all(
        torch.equal(a, b)
        for a, b in ((matrix.crow, other.crow), (matrix.col, other.col), (matrix.value, other.value))
    )
