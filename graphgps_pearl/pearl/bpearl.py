r"""B-PEARL: the samples are the standard basis, all of it, and the statistic is the sum."""

from __future__ import annotations

from typing import Self

from torch import Tensor

from graphgps_pearl.pearl.base import PEARL, readout_has_bias
from graphgps_pearl.pearl.graphs import check_graphs
from graphgps_pearl.pearl.phi import Phi, build_phi
from graphgps_pearl.pearl.pooling import pair_moments
from graphgps_pearl.pearl.rows import NodeOperators, PairRows


class BPEARL(PEARL):
    r"""The B-PEARL positional encoding from `"Learning Efficient Positional Encodings with Graph Neural
    Networks" <https://arxiv.org/abs/2502.01122>`_

    .. math:: P_v = \sum_{m=1}^{n} \Phi(G, e_m)_v

    with :math:`e_m` the standard basis of a graph with :math:`n` nodes. It commutes with permutations of the
    nodes exactly. Cost :math:`\Theta(n^2 F^2 + n |E| F)` and memory :math:`\Theta(n^2 F)` for each graph.

    Args:
        dim_pe: columns of the encoding.
        hidden_dim: width F of :math:`\Phi`.
        num_layers: number of GIN layers.
        num_taps: K of the generalised layer in front of them; 1 lifts the signal pointwise, 0 omits it.
        gso: the operator S of the generalised layer: ``adjacency``, ``laplacian``, ``sym_adjacency``,
            ``sym_laplacian`` or ``random_walk``.
        mlp_layers: linear maps in each GIN layer's MLP.
        mlp_hidden: width inside that MLP; ``hidden_dim`` unless given.
        norm: ``batch``, ``layer``, ``none``; or ``graph``: batch norm, in the generalised layer over one
            graph at a time.
        skip: ``none``, ``residual`` (X + f(X)) or ``sum`` (the sum of all layers' outputs).
        act: name of the activation.
        pool: statistic over m: ``sum``, ``mean``, ``var``, ``std``, ``max``, or several joined by ``+``,
            which one linear layer projects to ``dim_pe`` columns.
        scale: divide by :math:`\sqrt{n} L`, n the nodes of the graph and L the layers of :math:`\Phi`.

    >>> import torch
    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> pe = BPEARL(dim_pe=16, hidden_dim=8, num_layers=2, num_taps=4).eval()
    >>> p = pe(ring)
    >>> p.shape
    torch.Size([4, 16])
    >>> torch.allclose(p, p[:1])  # all nodes of a ring are alike
    True
    """

    def __init__(
        self,
        dim_pe: int,
        hidden_dim: int = 40,
        num_layers: int = 4,
        num_taps: int = 1,
        gso: str = "sym_laplacian",
        mlp_layers: int = 2,
        mlp_hidden: int | None = None,
        norm: str = "batch",
        skip: str = "residual",
        act: str = "relu",
        pool: str = "sum",
        scale: bool = False,
    ) -> None:
        phi = build_phi(
            dim_pe,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            num_taps=num_taps,
            mlp_layers=mlp_layers,
            mlp_hidden=mlp_hidden,
            norm=norm,
            skip=skip,
            act=act,
            bias=readout_has_bias(pool),
        )
        super().__init__(phi, gso=gso, pool=pool, scale=scale)

    @classmethod
    def from_phi(
        cls, phi: Phi, *, gso: str = "sym_laplacian", pool: str = "sum", scale: bool = False
    ) -> Self:
        r"""The encoding made of a :math:`\Phi` of one's own, such as a stack of generalised layers."""
        module = cls.__new__(cls)
        PEARL.__init__(module, phi, gso=gso, pool=pool, scale=scale)
        return module

    def forward(
        self, edge_index: Tensor, batch: Tensor | None = None, num_nodes: int | None = None
    ) -> Tensor:
        """The encoding of every node, :obj:`[N, dim_pe]`."""
        graphs = check_graphs(edge_index, batch, num_nodes)
        rows = PairRows(NodeOperators(graphs, self.gso, self._dtype))
        pairs = self.phi(rows.basis(), rows).to(self._dtype)  # [R, dim_pe]
        return self._scaled(self._pooled(pair_moments(pairs, rows, self.pool)), graphs)

    def __repr__(self) -> str:
        return self._describe()
