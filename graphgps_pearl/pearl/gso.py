r"""Graph shift operators: the matrix :math:`S` that moves a signal along the edges.

With :math:`A_{vu}` the number of edges :math:`u \to v`, and the degrees :math:`D_{in} = diag(A 1)` and
:math:`D_{out} = diag(A^\top 1)` (one and the same where every edge goes both ways):

==================  ==================================================  =================================
``adjacency``       :math:`A`                                           sum over the incoming edges
``laplacian``       :math:`D_{in} - A`                                  its rows sum to 0
``sym_adjacency``   :math:`D_{in}^{-1/2} A D_{out}^{-1/2}`              spectral norm at most 1
``sym_laplacian``   :math:`I - D_{in}^{-1/2} A D_{out}^{-1/2}`
``random_walk``     :math:`A D_{out}^{-1}`                              :math:`x_v = \sum_u x_u / d_u`
==================  ==================================================  =================================

Directed edges, duplicates and self-loops are taken as they are: a duplicate counts twice, a self-loop is an
edge from a node to itself and counts once in the degrees. A node without edges has degree 0 and
:math:`1/0` is read as 0, so its rows are finite (the identity's row for ``sym_laplacian``, zero elsewhere).
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphgps_pearl.pearl.names import check_name
from graphgps_pearl.pearl.sparse import SparseMatrix

GSOS = ("adjacency", "laplacian", "sym_adjacency", "sym_laplacian", "random_walk")


def graph_shift_operator(
    name: str, edge_index: Tensor, num_nodes: int, dtype: torch.dtype | None = None
) -> SparseMatrix:
    """The operator called ``name`` (one of :data:`GSOS`) of a graph, as a sparse matrix :obj:`[N, N]`.

    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> graph_shift_operator("laplacian", path, 3).to_dense().int().tolist()
    [[1, -1, 0], [-1, 2, -1], [0, -1, 1]]
    >>> graph_shift_operator("random_walk", path, 3).to_dense().tolist()
    [[0.0, 0.5, 0.0], [1.0, 0.0, 1.0], [0.0, 0.5, 0.0]]
    """
    check_name("gso", name, GSOS)
    source, target = edge_index
    ones = torch.ones(source.numel(), dtype=dtype or torch.get_default_dtype(), device=edge_index.device)
    degree_in, degree_out = _degree(target, num_nodes, ones), _degree(source, num_nodes, ones)

    if name in ("adjacency", "laplacian"):
        value = ones
    elif name == "random_walk":
        value = _inverse(degree_out)[source]
    else:
        value = _inverse(degree_in).sqrt()[target] * _inverse(degree_out).sqrt()[source]

    if name == "laplacian":
        return _diagonal_minus(degree_in, target, source, value)
    if name == "sym_laplacian":
        return _diagonal_minus(torch.ones_like(degree_in), target, source, value)
    return SparseMatrix.from_entries(target, source, value, num_nodes, num_nodes)


def _degree(index: Tensor, num_nodes: int, ones: Tensor) -> Tensor:
    return ones.new_zeros(num_nodes).index_add_(0, index, ones)


def _inverse(degree: Tensor) -> Tensor:
    return torch.where(degree > 0, 1 / degree.clamp(min=1), degree)


def _diagonal_minus(diagonal: Tensor, row: Tensor, col: Tensor, value: Tensor) -> SparseMatrix:
    node = torch.arange(diagonal.numel(), device=diagonal.device)
    entries = torch.cat([diagonal, -value])
    return SparseMatrix.from_entries(
        torch.cat([node, row]), torch.cat([node, col]), entries, node.numel(), node.numel()
    )
