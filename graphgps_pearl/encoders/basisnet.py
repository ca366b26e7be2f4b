r"""``BasisNet`` (Lim et al., ICLR 2023): a function of eigenspaces that no choice of their bases can change.

.. math:: P = \rho\Big(\sum_\mu \phi_{d_\mu}\big(V_\mu V_\mu^T\big)\Big)

over the eigenvalues :math:`\mu`, with :math:`V_\mu V_\mu^T \in \mathbb{R}^{n \times n}` the projector on its
eigenspace of dimension :math:`d_\mu` and :math:`\phi_d` a 2-IGN (Maron et al., ICLR 2019), one for each
dimension: linear maps between n x n matrices that commute with permutations, ReLU between them, and one such
map to vectors at the end; :math:`\rho` is an MLP. Sums over nodes are taken as means, so that values do not
grow with the graph.

Eigenvalues are equal where they differ by at most :data:`TOLERANCE`, relative to max(1, eigenvalue). With the
k smallest of them, an eigenspace that the cut at k would split is left out: a part of it is no function of
the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.encoders.mlp import mlp
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.spectral import SpectralEncoder
from graphgps_pearl.encoders.transforms import AddLaplacianEigen

TOLERANCE = 1e-5  # far above the rounding of float32, far below the gaps of small graphs


@dataclass(frozen=True)
class Eigenspaces:
    """The eigenspaces of a batch, S of them.

    Attributes:
        graph: Graph of every space [S].
        first: First eigenvector of every space, counted in its graph [S].
        dim: Dimension of every space [S].
    """

    graph: Tensor
    first: Tensor
    dim: Tensor

    @classmethod
    def of(cls, eigvals: Tensor, pairs: Pairs, limit: int | None = None) -> Eigenspaces:
        """Group the sorted eigenvalues [sum of k_i]; drop the space that ``limit`` eigenvalues would cut."""
        graph = torch.repeat_interleave(pairs.slots)
        slot = torch.arange(graph.numel(), device=graph.device) - (pairs.slots.cumsum(0) - pairs.slots)[graph]
        gap = torch.diff(eigvals, prepend=eigvals[:1]).abs()
        begins = (slot == 0) | (gap > TOLERANCE * eigvals.abs().clamp(min=1))
        space = begins.cumsum(0) - 1
        dim = torch.bincount(space)
        graph, first = graph[begins], slot[begins]
        whole = first + dim <= (limit or int(pairs.slots.max()))
        return cls(graph[whole], first[whole], dim[whole])

    def __getitem__(self, chosen: Tensor) -> Eigenspaces:
        return Eigenspaces(self.graph[chosen], self.first[chosen], self.dim[chosen])


@dataclass(frozen=True)
class Squares:
    """Which row belongs to which entry (i, j) of which n x n matrix, for S matrices without padding.

    Attributes:
        size: n of every matrix [S].
        matrix: Matrix of every index [Q], Q the sum of n.
        row, column: Index i and j of every entry [R], R the sum of n².
        transposed: Entry (j, i) of every entry [R].
        diagonal: Entry (i, i) of every index [Q].
    """

    size: Tensor
    matrix: Tensor
    row: Tensor
    column: Tensor
    transposed: Tensor
    diagonal: Tensor

    @classmethod
    def of(cls, size: Tensor) -> Squares:
        """Entries of matrices of these sizes, one matrix after the other, row by row."""
        area, first = size * size, size.cumsum(0) - size
        corner = area.cumsum(0) - area
        entry = torch.repeat_interleave(area)
        place = torch.arange(entry.numel(), device=size.device) - corner[entry]
        i, j = place // size[entry], place % size[entry]
        matrix = torch.repeat_interleave(size)
        own = torch.arange(matrix.numel(), device=size.device) - first[matrix]
        return cls(
            size,
            matrix,
            first[entry] + i,
            first[entry] + j,
            corner[entry] + j * size[entry] + i,
            corner[matrix] + own * (size[matrix] + 1),
        )

    def means(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The equivariant maps from entries [R, C] to indices and to matrices.

        Means of rows, means of columns and the diagonal [Q, 3 C]; mean of all entries and of the diagonal
        [S, 2 C].
        """
        n = self.size[self.matrix, None]
        empty = x.new_zeros(self.matrix.numel(), x.size(1))
        rows, columns = (empty.index_add(0, index, x) / n for index in (self.row, self.column))
        diagonal = x[self.diagonal]
        totals = x.new_zeros(self.size.numel(), 2 * x.size(1))
        totals = totals.index_add(0, self.matrix, torch.cat((rows, diagonal), 1)) / self.size[:, None]
        return torch.cat((rows, columns, diagonal), 1), totals


class _Equivariant(nn.Module):
    """Weights for every dimension of eigenspaces, drawn at the scale of a linear layer of ``fan_in``."""

    def weight(self, kinds: int, dim_in: int, dim_out: int, fan_in: int) -> nn.Parameter:
        bound = fan_in**-0.5
        return nn.Parameter(torch.empty(kinds, dim_in, dim_out).uniform_(-bound, bound))


class MatrixLayer(_Equivariant):
    """All 15 equivariant linear maps from n x n matrices to such, and the two constant ones (bias).

    Args:
        kinds: Number of weights to choose from.
        dim_in: Channels before.
        dim_out: Channels after.
    """

    def __init__(self, kinds: int, dim_in: int, dim_out: int) -> None:
        super().__init__()
        fan_in = 15 * dim_in
        self.own, self.other = (self.weight(kinds, dim_in, dim_out, fan_in) for _ in range(2))
        self.to_rows, self.to_columns = (self.weight(kinds, 3 * dim_in, dim_out, fan_in) for _ in range(2))
        self.to_all = self.weight(kinds, 2 * dim_in, dim_out, fan_in)
        self.to_diagonal = self.weight(kinds, 5 * dim_in, dim_out, fan_in)
        self.bias, self.diagonal_bias = (nn.Parameter(torch.zeros(kinds, dim_out)) for _ in range(2))

    def forward(self, x: Tensor, squares: Squares, kind: int) -> Tensor:
        """Entries [R, dim_in] to [R, dim_out]."""
        of_index, of_matrix = squares.means(x)
        shared = of_matrix @ self.to_all[kind] + self.bias[kind]
        rows = of_index @ self.to_rows[kind] + shared[squares.matrix]
        columns = of_index @ self.to_columns[kind]
        out = x @ self.own[kind] + (x @ self.other[kind])[squares.transposed]
        out = out + rows[squares.row] + columns[squares.column]
        five = torch.cat((of_index, of_matrix[squares.matrix]), 1)
        return out.index_add(0, squares.diagonal, five @ self.to_diagonal[kind] + self.diagonal_bias[kind])


class VectorLayer(_Equivariant):
    """All five equivariant linear maps from n x n matrices to vectors, and the constant one (bias)."""

    def __init__(self, kinds: int, dim_in: int, dim_out: int) -> None:
        super().__init__()
        self.maps = self.weight(kinds, 5 * dim_in, dim_out, 5 * dim_in)
        self.bias = nn.Parameter(torch.zeros(kinds, dim_out))

    def forward(self, x: Tensor, squares: Squares, kind: int) -> Tensor:
        """Entries [R, dim_in] to [Q, dim_out]."""
        of_index, of_matrix = squares.means(x)
        return torch.cat((of_index, of_matrix[squares.matrix]), 1) @ self.maps[kind] + self.bias[kind]


class BasisNet(nn.Module):
    """Eigenpairs of a batch to [N, dim_pe].

    Args:
        dim_pe: Width of the encoding.
        hidden: Channels of the matrices, and width inside ρ.
        phi_out: Channels of an eigenspace's vector.
        layers: Maps from matrices to matrices in φ.
        post_layers: Linear maps of ρ.
        max_dim: Eigenspaces of this dimension and above share one φ.
        limit: Number of eigenvalues of a graph; one more is to be given, which says whether the cut splits an
            eigenspace. None: all are given.
    """

    def __init__(
        self,
        dim_pe: int,
        hidden: int,
        phi_out: int,
        layers: int,
        post_layers: int,
        max_dim: int = 3,
        limit: int | None = None,
    ) -> None:
        super().__init__()
        self.max_dim, self.limit = max_dim, limit
        widths = [1, *[hidden] * layers]
        self.matrices = nn.ModuleList(MatrixLayer(max_dim, a, b) for a, b in pairwise(widths))
        self.vectors = VectorLayer(max_dim, hidden, phi_out)
        self.rho = mlp(phi_out, hidden, dim_pe, post_layers, last_act=False, norm=True)

    def forward(self, eigvals: Tensor, eigvecs: Tensor, pairs: Pairs) -> Tensor:
        """Eigenvalues [sum of k_i] and rows ``eigvecs`` [R] to [N, dim_pe]."""
        spaces = Eigenspaces.of(eigvals, pairs, self.limit)
        total = eigvecs.new_zeros(pairs.batch.numel(), self.vectors.bias.size(1))
        for kind in range(self.max_dim):
            chosen = spaces[spaces.dim.clamp(max=self.max_dim) == kind + 1]
            if chosen.graph.numel():
                squares = Squares.of(pairs.sizes[chosen.graph])
                first_node = (pairs.sizes.cumsum(0) - pairs.sizes)[chosen.graph]
                node = torch.arange(squares.matrix.numel(), device=first_node.device)
                node = node + (first_node - (squares.size.cumsum(0) - squares.size))[squares.matrix]
                x = projectors(eigvecs, pairs, chosen, squares, node)[:, None]
                for layer in self.matrices:
                    x = layer(x, squares, kind).relu()
                total = total.index_add(0, node, self.vectors(x, squares, kind))
        return self.rho(total)


def projectors(eigvecs: Tensor, pairs: Pairs, spaces: Eigenspaces, squares: Squares, node: Tensor) -> Tensor:
    """Entries of V Vᵀ of every space [R], from rows ``eigvecs`` (node, eigenvector)."""
    out = eigvecs.new_zeros(squares.row.numel())
    first = pairs.start[node] + spaces.first[squares.matrix]
    dim = spaces.dim[squares.matrix]
    for number in range(int(spaces.dim.max())):
        inside = number < dim
        column = torch.where(inside, eigvecs[torch.where(inside, first + number, first)], 0)
        out += column[squares.row] * column[squares.column]
    return out


class BasisNetNodeEncoder(SpectralEncoder):
    """BasisNet for GraphGym; config group ``posenc_BasisNet``."""

    name = "BasisNet"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> BasisNet:
        """Read ``posenc_BasisNet``."""
        return BasisNet(
            settings.dim_pe,
            settings.phi_hidden_dim,
            settings.phi_out_dim,
            settings.layers,
            settings.post_layers,
            settings.max_multiplicity,
            settings.eigen.max_freqs or None,
        )

    @classmethod
    def slots(cls, eigen: Any) -> int | None:
        """One eigenvalue more than asked for says whether the last eigenspace is whole."""
        return eigen.max_freqs + 1 if eigen.max_freqs else None

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """Orthonormal eigenvectors."""
        eigen = settings.eigen
        number = cls.slots(eigen) or 0
        return [AddLaplacianEigen(cls.name, eigen.laplacian_norm, "L2", number, eigen.which)]

    @classmethod
    def row_bytes(cls, settings: Any) -> int:
        """Two matrices of each layer, and the indices."""
        return 32 + 8 * settings.phi_hidden_dim * settings.layers

    @staticmethod
    def num_rows(pairs: Pairs) -> Tensor:
        """n² entries for each eigenspace."""
        return (pairs.slots * pairs.sizes.square()).sum()

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.eigvals_BasisNet`` and ``batch.eigvecs_BasisNet``."""
        return self.encoding(*self.eigen(batch))
