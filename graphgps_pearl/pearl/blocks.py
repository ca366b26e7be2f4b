"""Rows in blocks that stay in the processor's cache, and what every layer that works so has in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from graphgps_pearl.pearl.room import empty
from graphgps_pearl.pearl.rows import Rows
from graphgps_pearl.pearl.sparse import SparseMatrix

_BLOCK = 2**17  # numbers in a block: half a megabyte in float32
_ONE = 2**20  # so many numbers are one block: calling torch more often would cost more than the cache wins

relu_gradient = torch.ops.aten.threshold_backward.grad_input


class Blocks:
    """The blocks of some rows, and room to work on one of them."""

    def __init__(self, like: Tensor, widths: Sequence[int], weight: Tensor | None) -> None:
        size = max((_BLOCK if like.size(0) * max(widths) > _ONE else _ONE) // max(widths), 64)
        self._slices = [slice(start, start + size) for start in range(0, like.size(0), size)]
        self._rooms: dict[int, Tensor] = {}
        self._largest = min(size, like.size(0)) * max(widths)
        self.ones = like.new_ones(1, like.size(0))
        self.weight = None if weight is None else weight.to(like.dtype).unsqueeze(0)  # [1, R]
        self.count = (self.ones if weight is None else weight).sum(dtype=torch.float64)
        self.total = self.count.clamp(min=1e-300)

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        return enumerate(self._slices)

    def room(self, which: int, like: Tensor) -> Tensor:
        """A tensor as large as ``like``, for as long as the block is worked on."""
        if which not in self._rooms:
            self._rooms[which] = empty(self._largest, like=self.ones)
        return self._rooms[which][: like.numel()].view(like.shape)

    def table(self, width: int) -> Tensor:
        """Room for two sums of every block."""
        return self.ones.new_zeros(2, len(self._slices), 1, width)

    def add(self, sums: Tensor, i: int, b: slice, factor: Tensor | None, a: Tensor, other: Tensor) -> None:
        """Sum a block's rows of ``a`` and of ``a * other``, each row ``factor`` times, into a table."""
        times = (self.ones if factor is None else factor)[:, b]
        torch.mm(times, a, out=sums[0, i])
        torch.mm(times, torch.mul(a, other, out=self.room(0, a)), out=sums[1, i])

    def activated(self, z: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """The block ``max(0, scale z + shift)``."""
        return torch.addcmul(shift, z, scale, out=self.room(1, z)).relu_()


def to_neighbours(
    g: Tensor, grad: Tensor | None, x: Tensor, eps: Tensor, rows: Rows, blocks: Blocks
) -> tuple[Tensor, Tensor]:
    """The gradients of x and of epsilon from that of h_0 and, where x was added, of the output."""
    grad_x = product(rows.matrix.t(), g)
    grad_eps = torch.zeros((), dtype=torch.float64, device=x.device)
    keep = 1 + float(eps)
    for _, b in blocks:
        grad_eps += torch.dot(g[b].flatten(), own(x, rows, b).flatten())
        g[b] *= keep
        if grad is not None:
            g[b] += grad[b]
    if rows.parent is None:
        return grad_x.add_(g), grad_eps.to(eps.dtype).view(eps.shape)
    return grad_x.index_add_(0, rows.parent, g), grad_eps.to(eps.dtype).view(eps.shape)


def product(matrix: SparseMatrix, x: Tensor) -> Tensor:
    """The matrix times rows, or times all the rows of a node side by side."""
    return matrix.product(x.reshape(matrix.shape[1], -1)).view(-1, x.size(1))


def own(x: Tensor, rows: Rows, b: slice) -> Tensor:
    """A block of each row's own value one layer earlier."""
    return x[b] if rows.parent is None else x.index_select(0, rows.parent[b])
