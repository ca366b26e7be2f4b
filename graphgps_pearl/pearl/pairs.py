r"""What B-PEARL knows before it sums over m: :math:`\Phi(G, e_m)_v` of every ordered pair of nodes.

It is a learned relative encoding. Taps of the random-walk operator alone are RRWP, the relative random walks
:math:`(D^{-1} A)^k_{m v}`; their diagonal is RWSE.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgps_pearl.pearl.graphs import Graphs


@dataclass(frozen=True)
class PairEncoding:
    r""":math:`\Phi(G, e_m)_v` of all pairs (v, m), each different row once.

    Attributes:
        value: the rows, :obj:`[R, D]`.
        row: the row of every pair, node by node in the order of m, :obj:`[sum n^2]`.
        graphs: the graphs.
    """

    value: Tensor
    row: Tensor
    graphs: Graphs

    def __repr__(self) -> str:
        return f"PairEncoding(value={list(self.value.shape)}, row={list(self.row.shape)})"

    @property
    def first(self) -> Tensor:
        """Where the pairs of each node begin, :obj:`[N]`."""
        size = self.graphs.node_sizes
        return size.cumsum(0) - size

    def rows_of(self, v: Tensor, m: Tensor) -> Tensor:
        """The rows of pairs of nodes (v, m), each of one graph."""
        return self.row[self.first[v] + self.graphs.position[m]]

    def of_edges(self, edge_index: Tensor) -> Tensor:
        r""":math:`\Phi(G, e_u)_v` of every edge (u, v), :obj:`[E, D]`."""
        u, v = edge_index
        return self.value.index_select(0, self.rows_of(v, u))

    def to_dense(self) -> Tensor:
        """All pairs written out, :obj:`[N, n_max, D]`, zero where the graph of v has no node m."""
        size = self.graphs.node_sizes
        widest = int(size.max()) if size.numel() else 0
        m = torch.arange(widest, device=size.device)
        inside = m < size.unsqueeze(1)  # [N, n_max]
        dense = self.value.new_zeros(size.numel(), widest, self.value.size(1))
        v, m = inside.nonzero(as_tuple=True)
        return dense.index_put((v, m), self.value[self.row[self.first[v] + m]])
