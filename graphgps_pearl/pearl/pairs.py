r"""B-PEARL before the sum over m: :math:`\Phi(G, e_m)_v` of every ordered pair of nodes (v, m).

This is a learned relative encoding. Taps of the random-walk operator alone are RRWP, the relative random
walks :math:`(D^{-1} A)^k_{m v}`; their diagonal is RWSE.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.hooks import pair_rows
from graphgps_pearl.pearl.phi import Phi


@dataclass(frozen=True)
class PairEncoding:
    r""":math:`\Phi(G, e_m)_v` of all pairs (v, m); equal pairs may share a row.

    Attributes:
        hidden: the rows, :obj:`[R, D]`, or what ``readout`` maps to them, :obj:`[R, F]`.
        row: the row of every pair, node by node in the order of m, :obj:`[sum n^2]`.
        graphs: the graphs.
        readout: the linear map at the end of :math:`\Phi`, if it is still to be applied: linear maps of the
            pairs can be joined with it.
    """

    hidden: Tensor
    row: Tensor
    graphs: Graphs
    readout: nn.Linear | None = None

    @cached_property
    def value(self) -> Tensor:
        """The rows, :obj:`[R, D]`."""
        return self._read_out(self.hidden)

    def _read_out(self, hidden: Tensor) -> Tensor:
        return hidden if self.readout is None else self.readout(hidden).to(hidden.dtype)

    def __repr__(self) -> str:
        width = self.hidden.size(1) if self.readout is None else self.readout.out_features
        return f"PairEncoding(value={[self.hidden.size(0), width]}, row={list(self.row.shape)})"

    @property
    def first(self) -> Tensor:
        """Index of the first pair of each node in ``row``, :obj:`[N]`."""
        size = self.graphs.node_sizes
        return size.cumsum(0) - size

    def rows_of(self, v: Tensor, m: Tensor) -> Tensor:
        """The rows of pairs of nodes (v, m), each pair inside one graph."""
        return self.row[self.first[v] + self.graphs.position[m]]

    def of_edges(self, edge_index: Tensor) -> Tensor:
        r""":math:`\Phi(G, e_u)_v` of every edge (u, v), :obj:`[E, D]`."""
        u, v = edge_index
        return self._read_out(self.hidden.index_select(0, self.rows_of(v, u)))

    def to_dense(self) -> Tensor:
        """All pairs, padded: :obj:`[N, n_max, D]`, zero where the graph of v has no node m."""
        size = self.graphs.node_sizes
        widest = int(size.max()) if size.numel() else 0
        m = torch.arange(widest, device=size.device)
        inside = m < size.unsqueeze(1)  # [N, n_max]
        dense = self.value.new_zeros(size.numel(), widest, self.value.size(1))
        v, m = inside.nonzero(as_tuple=True)
        return dense.index_put((v, m), self.value[self.row[self.first[v] + m]])


def encode_pairs(
    phi: Phi,
    edge_index: Tensor,
    batch: Tensor | None = None,
    num_nodes: int | None = None,
    gso: str = "sym_laplacian",
    quotient: bool | None = None,
    edge_weight: Tensor | None = None,
) -> PairEncoding:
    r""":math:`\Phi(G, e_m)_v` of every ordered pair (v, m) of nodes, without a statistic over m.

    >>> from graphgps_pearl.pearl import TapLayer
    >>> walk = Phi([TapLayer(1, 3, num_taps=3, act="identity")])
    >>> with torch.no_grad():
    ...     _ = walk.layers[0].weight.copy_(torch.eye(3).unsqueeze(1))
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> encode_pairs(walk, path, gso="random_walk").to_dense()[0, 0].tolist()  # return to an end of the path
    [1.0, 0.0, 0.5]
    """
    graphs = check_graphs(edge_index, batch, num_nodes, edge_weight)
    dtype = next(phi.parameters()).dtype
    rows = pair_rows(phi, graphs, gso, dtype, quotient, keep_pairs=True)
    return PairEncoding(phi(rows.signal, rows.layers).to(dtype), rows.pair_row, graphs)
