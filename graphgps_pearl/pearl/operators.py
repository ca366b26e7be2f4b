r"""Graph shift operators :math:`S` and the sparse product that applies them.

With :math:`A_{vu}` the sum of the weights of the edges :math:`u \to v` (1 each unless given), and the degrees
:math:`D_{in} = diag(A 1)`, :math:`D_{out} = diag(A^\top 1)`, which are equal where every edge goes both ways,
every operator is :math:`S = C \pm D_{in}^a A D_{out}^b`, as :data:`SHIFTS` has it:

==================  ==================================================  =================================
``adjacency``       :math:`A`                                           sum over the incoming edges
``laplacian``       :math:`D_{in} - A`                                  its rows sum to 0
``sym_adjacency``   :math:`D_{in}^{-1/2} A D_{out}^{-1/2}`              spectral norm at most 1
``sym_laplacian``   :math:`I - D_{in}^{-1/2} A D_{out}^{-1/2}`
``random_walk``     :math:`A D_{out}^{-1}`                              :math:`x_v = \sum_u x_u / d_u`
==================  ==================================================  =================================

Directed edges, duplicates and self-loops are taken as they are: a duplicate counts twice, a self-loop is an
edge from a node to itself and counts once in the degrees. A node without edges has degree 0, and 1/0 is read
as 0, so its rows are finite (the identity's row for ``sym_laplacian``, zero elsewhere).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from graphgps_pearl.pearl.checks import check_name
from graphgps_pearl.vocabulary import OPERATORS


class Shift(NamedTuple):
    """:math:`S = C + sign \\cdot D_{in}^a A D_{out}^b`, with C zero, the identity or :math:`D_{in}`."""

    diagonal: Literal["zero", "identity", "degree"]
    sign: float
    a: float
    b: float


SHIFTS = {
    "adjacency": Shift("zero", 1, 0, 0),
    "laplacian": Shift("degree", -1, 0, 0),
    "sym_adjacency": Shift("zero", 1, -0.5, -0.5),
    "sym_laplacian": Shift("identity", -1, -0.5, -0.5),
    "random_walk": Shift("zero", 1, 0, -1),
}


def powers_grow(name: str) -> bool:
    """Whether powers of this operator may have large entries."""
    return name not in ("sym_adjacency", "random_walk")


def degree_power(degree: Tensor, exponent: float) -> Tensor:
    """:math:`d^{exponent}`, and 0 where the degree is 0 (1 everywhere if the exponent is 0)."""
    if exponent == 0:
        return torch.ones_like(degree)
    return torch.where(degree > 0, torch.where(degree > 0, degree, 1).pow(exponent), 0)


def graph_shift_operator(
    name: str,
    edge_index: Tensor,
    num_nodes: int,
    dtype: torch.dtype | None = None,
    edge_weight: Tensor | None = None,
) -> SparseMatrix:
    """The operator ``name`` (one of :data:`OPERATORS`) of a graph, a sparse matrix :obj:`[N, N]`.

    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> graph_shift_operator("laplacian", path, 3).to_dense().int().tolist()
    [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    >>> graph_shift_operator("random_walk", path, 3).to_dense().tolist()
    [[0.0, 0.5, 0.0], [1.0, 0.0, 1.0], [0.0, 0.5, 0.0]]
    """
    check_name("gso", name, OPERATORS)
    source, target = edge_index
    dtype = dtype or torch.get_default_dtype()
    if edge_weight is None:
        weight = torch.ones(source.numel(), dtype=dtype, device=edge_index.device)
    else:
        weight = edge_weight.to(dtype)
    return shifted(SparseMatrix.from_entries(target, source, weight, num_nodes, num_nodes), name)


def shifted(adjacency: SparseMatrix, name: str) -> SparseMatrix:
    """The operator ``name`` of a graph from its adjacency matrix :math:`A`."""
    shift = SHIFTS[name]
    if shift == SHIFTS["adjacency"]:
        return adjacency
    row, col, weight = adjacency.row, adjacency.col, adjacency.value
    num_nodes = adjacency.shape[0]
    degree_in, degree_out = (weight.new_zeros(num_nodes).index_add_(0, ends, weight) for ends in (row, col))
    value = shift.sign * weight
    if shift.a:
        value = value * degree_power(degree_in, shift.a)[row]
    if shift.b:
        value = value * degree_power(degree_out, shift.b)[col]
    if shift.diagonal == "zero":
        return SparseMatrix(adjacency.crow, col, value, num_nodes)
    node = torch.arange(num_nodes, device=col.device)
    diagonal = degree_in if shift.diagonal == "degree" else torch.ones_like(degree_in)
    row, col, value = torch.cat([node, row]), torch.cat([node, col]), torch.cat([diagonal, value])
    return SparseMatrix.from_entries(row, col, value, num_nodes, num_nodes)


def taps(x: Tensor, shift: Callable[[Tensor], Tensor], num_taps: int) -> list[Tensor]:
    r"""The taps :math:`X, S X, \dots, S^{K-1} X`, where ``shift`` applies S; no power of S is formed.

    >>> [tap.tolist() for tap in taps(torch.tensor([[1.0], [2.0]]), lambda x: 10 * x, num_taps=3)]
    [[[1.0], [2.0]], [[10.0], [20.0]], [[100.0], [200.0]]]
    """
    powers = [x]
    for _ in range(num_taps - 1):
        powers.append(shift(powers[-1]))
    return powers


class SparseMatrix:
    r"""A constant sparse matrix in compressed rows (CSR), :obj:`[num_rows, num_cols]`.

    ``matrix @ x`` multiplies rows :obj:`[num_cols, F]` and is differentiable in them. The transpose is cached
    for the backward pass, so that :math:`Y = M X` and :math:`\partial X = M^\top \partial Y` are one sparse
    product each. Entries with the same indices add up. Half precision is multiplied in the precision of the
    entries, which is also that of the result.

    Args:
        crow: index of the first entry of each row, :obj:`[num_rows + 1]`.
        col: the column of each entry, :obj:`[nnz]`.
        value: the entries, :obj:`[nnz]`.
        num_cols: number of columns.
        transpose: makes the transpose where that is quicker than sorting the entries.
        symmetric: the matrix equals its transpose.

    >>> row, col = torch.tensor([1, 0, 1]), torch.tensor([0, 1, 0])
    >>> matrix = SparseMatrix.from_entries(row, col, torch.ones(3), num_rows=2, num_cols=2)
    >>> matrix.to_dense().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    >>> (matrix @ torch.tensor([[1.0, 10.0], [2.0, 20.0]])).tolist()
    [[2.0, 20.0], [2.0, 20.0]]
    """

    def __init__(
        self,
        crow: Tensor,
        col: Tensor,
        value: Tensor,
        num_cols: int,
        transpose: Callable[[], SparseMatrix] | None = None,
        symmetric: bool = False,
    ) -> None:
        self.crow, self.col, self.value = crow, col, value
        self.shape = (crow.numel() - 1, num_cols)
        self.symmetric = symmetric
        self._make_transpose = transpose
        self._transpose: SparseMatrix | None = None
        self._csr = self._compressed()

    def _compressed(self) -> Tensor:
        _silence_beta_warning()
        return torch.sparse_csr_tensor(self.crow, self.col, self.value, self.shape, check_invariants=False)

    def __getstate__(self) -> dict[str, Any]:
        if self._make_transpose is not None and not self.symmetric:
            self.t()._make_transpose = None
        return {**self.__dict__, "_make_transpose": None, "_csr": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._csr = self._compressed()

    @classmethod
    def from_entries(
        cls, row: Tensor, col: Tensor, value: Tensor, num_rows: int, num_cols: int
    ) -> SparseMatrix:
        """Build the matrix from its entries in any order."""
        order = torch.argsort(row.int(), stable=True)  # narrow numbers are sorted faster
        entries = row.new_zeros(num_rows).index_add_(
            0, row, torch.ones_like(row)
        )  # bincount makes a GPU wait
        crow = torch.cat([entries.new_zeros(1), entries.cumsum(0)])
        return cls(crow, col[order], value[order], num_cols)

    @classmethod
    def from_dense(cls, matrix: Tensor) -> SparseMatrix:
        """Build the matrix from a dense one."""
        row, col = matrix.nonzero(as_tuple=True)
        return cls.from_entries(row, col, matrix[row, col], *matrix.shape)

    @property
    def row(self) -> Tensor:
        """The row of each entry, :obj:`[nnz]`."""
        rows = torch.arange(self.shape[0], device=self.crow.device)
        return rows.repeat_interleave(self.crow.diff(), output_size=self.col.numel())

    @cached_property
    def _entry_row(self) -> Tensor:
        return self.row

    def t(self) -> SparseMatrix:
        """The transpose, cached after the first call."""
        if self.symmetric:
            return self
        if self._transpose is None:
            if self._make_transpose is not None:
                self._transpose = self._make_transpose()
            else:
                self._transpose = SparseMatrix.from_entries(
                    self.col, self.row, self.value, self.shape[1], self.shape[0]
                )
        return self._transpose

    def to_dense(self) -> Tensor:
        """The matrix with all its zeros."""
        dense = self.value.new_zeros(self.shape)
        return dense.index_put_((self.row, self.col), self.value, accumulate=True)

    def __matmul__(self, x: Tensor) -> Tensor:
        """Multiply rows :obj:`[num_cols, F]`; differentiable in them."""
        if not x.requires_grad:  # a function of autograd costs as much as the product of a small graph
            return self.product(x)
        return _Product.apply(x, self)

    def product(self, x: Tensor) -> Tensor:
        """The product alone, without a backward pass."""
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(self.value.dtype)
            if not x.numel() or not self.col.numel():  # torch refuses empty products
                return x.new_zeros(self.shape[0], x.size(1))
            if x.device.type == "cpu" and x.size(1) == 1:  # sparse products of one column are slow
                terms = self.value * x.view(-1).index_select(0, self.col)
                return x.new_zeros(self.shape[0]).index_add_(0, self._entry_row, terms).unsqueeze(1)
            if x.device.type == "cpu":  # this kernel is twice as fast as MKL's at the widths met here
                return torch.sparse.mm(self._csr, x.contiguous(), "sum")
            return self._csr @ x

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]}, {self.shape[1]}, nnz={self.col.numel()})"


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, matrix: SparseMatrix) -> Tensor:
        return matrix.product(x)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def] # torch's own signature
        x, ctx.matrix = inputs
        ctx.dtype = x.dtype

    @staticmethod
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def] # torch's own signature
        return (ctx.matrix.t() @ grad).to(ctx.dtype), None


@cache
def _silence_beta_warning() -> None:
    """Torch warns once per process that its CSR layout is a beta; only the product is used here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.zeros(1, 1).to_sparse_csr()
