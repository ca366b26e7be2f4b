r"""A constant sparse matrix that multiplies rows of features: the one product every layer is made of.

Compressed rows (CSR), no padding, and the transpose is kept for the backward pass, so that
:math:`Y = M X` and :math:`\partial X = M^\top \partial Y` are one sparse product each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor


class SparseMatrix:
    """A sparse matrix :obj:`[num_rows, num_cols]` with constant entries.

    Entries named twice add up. Half precision is multiplied in the entries' own precision, which is also
    that of the result: sums over neighbours are not where precision should be saved.

    Args:
        crow: where each row starts, :obj:`[num_rows + 1]`.
        col: the column of each entry, :obj:`[nnz]`.
        value: the entries, :obj:`[nnz]`.
        num_cols: number of columns.
        transpose: makes the transpose where a quicker way is known than sorting the entries.
        symmetric: the matrix is known to be its own transpose.

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
        _hear_out_beta_warning()
        self._csr = torch.sparse_csr_tensor(crow, col, value, self.shape, check_invariants=False)

    @classmethod
    def from_entries(
        cls, row: Tensor, col: Tensor, value: Tensor, num_rows: int, num_cols: int
    ) -> SparseMatrix:
        """Build the matrix from its entries in any order."""
        order = torch.argsort(row, stable=True)
        crow = row.new_zeros(num_rows + 1)
        crow[1:] = torch.bincount(row, minlength=num_rows).cumsum(0)
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

    def t(self) -> SparseMatrix:
        """The transpose, made at the first call and kept."""
        if self.symmetric:
            return self
        if self._transpose is None:
            self._transpose = self._make_transpose() if self._make_transpose else self._sorted_transpose()
        return self._transpose

    def _sorted_transpose(self) -> SparseMatrix:
        return SparseMatrix.from_entries(self.col, self.row, self.value, self.shape[1], self.shape[0])

    def to_dense(self) -> Tensor:
        """The matrix with all its zeros."""
        dense = self.value.new_zeros(self.shape)
        return dense.index_put_((self.row, self.col), self.value, accumulate=True)

    def __matmul__(self, x: Tensor) -> Tensor:
        """Multiply rows :obj:`[num_cols, F]`; differentiable in them."""
        return _Product.apply(x, self)

    def product(self, x: Tensor) -> Tensor:
        """The same without a way back."""
        with torch.autocast(x.device.type, enabled=False):
            x = x.to(self.value.dtype)
            if not x.numel() or not self.col.numel():  # torch refuses to multiply by nothing
                return x.new_zeros(self.shape[0], x.size(1))
            if x.device.type == "cpu":  # this kernel is twice as fast as MKL's at the widths met here
                return torch.sparse.mm(self._csr, x.contiguous(), "sum")
            return self._csr @ x

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape[0]}, {self.shape[1]}, nnz={self.col.numel()})"


@cache
def _hear_out_beta_warning() -> None:
    """Torch says once in a process that its CSR layout is a beta; the product is all that is used of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.zeros(1, 1).to_sparse_csr()


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
