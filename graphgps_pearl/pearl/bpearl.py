r"""B-PEARL: the samples are the standard basis, all of it, and the statistic is the sum."""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn

from graphgps_pearl.pearl.base import PEARL, readout_has_bias
from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.norm import BatchNorm, GraphNorm, NoNorm
from graphgps_pearl.pearl.pairs import PairEncoding
from graphgps_pearl.pearl.phi import Phi, build_phi
from graphgps_pearl.pearl.plan import Plan, build_plan, check_number, check_plan, merge_plan, num_rounds
from graphgps_pearl.pearl.pooling import PAIR_POOLS, pair_moments
from graphgps_pearl.pearl.quotient import QuotientRows
from graphgps_pearl.pearl.rows import NodeOperators, PairRows

_REFINING = 1000  # multiplications that one round of refinement costs, for each pair within reach


class BPEARL(PEARL):
    r"""The B-PEARL positional encoding from `"Learning Efficient Positional Encodings with Graph Neural
    Networks" <https://arxiv.org/abs/2502.01122>`_

    .. math:: P_v = \sum_{m=1}^{n} \Phi(G, e_m)_v

    with :math:`e_m` the standard basis of a graph with :math:`n` nodes. It commutes with permutations of the
    nodes exactly. Written out, cost is :math:`\Theta(n^2 F^2 + n |E| F)` and memory :math:`\Theta(n^2 F)` for
    each graph; with equal rows merged both follow the number of different neighbourhoods.

    Before the sum there is a value for every ordered pair of nodes. ``pool="sum+self"`` keeps the diagonal
    :math:`\Phi(G, e_v)_v` beside the sum, ``return_pairs`` gives all of them.

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
        pool: statistic over m: ``sum``, ``mean``, ``var``, ``std``, ``max``, ``self`` (the term m = v), or
            several joined by ``+``, which one linear layer projects to ``dim_pe`` columns.
        scale: divide by :math:`\sqrt{n} L`, n the nodes of the graph and L the layers of :math:`\Phi`.
        tap_diagonal: put the taps' own diagonal :math:`(S^k)_{vv}`, k = 1 to K - 1, normalised, beside the
            statistics before they are projected. With the random-walk operator it is RWSE.
        return_pairs: return ``(P, pairs)``, the second a :class:`~graphgps_pearl.pearl.PairEncoding`.
        quotient: compute pairs (v, m) that must be equal once (:mod:`~graphgps_pearl.pearl.plan`); the result
            and its gradients are those of all pairs. None: where it pays, which is where the signal does not
            get through all of the graphs.

    >>> import torch
    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> pe = BPEARL(dim_pe=16, hidden_dim=8, num_layers=2, num_taps=4).eval()
    >>> p = pe(ring)
    >>> p.shape
    torch.Size([4, 16])
    >>> torch.allclose(p, p[:1])  # all nodes of a ring are alike
    True
    """

    pools = PAIR_POOLS

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
        tap_diagonal: bool = False,
        return_pairs: bool = False,
        quotient: bool | None = None,
    ) -> None:
        if tap_diagonal and num_taps < 2:
            raise ValueError(
                f"tap_diagonal needs num_taps of at least 2, got {num_taps}: S^0 is 1 everywhere"
            )
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
        super().__init__(phi, gso=gso, pool=pool, scale=scale, beside=num_taps - 1 if tap_diagonal else 0)
        self.quotient, self.return_pairs = quotient, return_pairs
        self.tap_norm: nn.Module | None = None
        if tap_diagonal:  # the taps are data: their batch statistics do not lag behind any weights
            self.tap_norm = NoNorm() if norm == "none" else BatchNorm(num_taps - 1)

    @classmethod
    def from_phi(
        cls,
        phi: Phi,
        *,
        gso: str = "sym_laplacian",
        pool: str = "sum",
        scale: bool = False,
        return_pairs: bool = False,
        quotient: bool | None = None,
    ) -> Self:
        r"""The encoding made of a :math:`\Phi` of one's own, such as a stack of generalised layers.

        Equal pairs are merged if GIN layers follow at most one generalised layer; other stacks see all pairs.
        """
        module = cls.__new__(cls)
        PEARL.__init__(module, phi, gso=gso, pool=pool, scale=scale)
        module.quotient, module.return_pairs = quotient if phi.depths() else False, return_pairs
        module.tap_norm = None
        return module

    def reset_parameters(self) -> None:
        """Draw all weights afresh."""
        super().reset_parameters()
        if isinstance(self.tap_norm, BatchNorm):
            self.tap_norm.reset_parameters()

    def forward(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        num_nodes: int | None = None,
        plan: Plan | None = None,
    ) -> Tensor | tuple[Tensor, PairEncoding]:
        """The encoding of every node, :obj:`[N, dim_pe]`; ``plan`` as :func:`stored_plan` finds it."""
        graphs = check_graphs(edge_index, batch, num_nodes)
        rows: PairRows | QuotientRows
        if self._merges(graphs, plan):
            rows = QuotientRows(self._plan(graphs, plan), self.gso, self._dtype, graphs)
            x = self.phi(rows.signal, rows.layers)
        else:
            check_number(graphs)
            rows = PairRows(NodeOperators(graphs, self.gso, self._dtype))
            x = self.phi(rows.signal, rows)
        x = x.to(self._dtype)
        pe = self._pooled(pair_moments(x, rows, self.pool), self._tap_diagonal(rows))
        pe = self._scaled(pe, graphs)
        return (pe, PairEncoding(x, rows.pair_row, graphs)) if self.return_pairs else pe

    def _merges(self, graphs: Graphs, plan: Plan | None) -> bool:
        """Whether equal pairs are merged: as told, or there is a plan, or it pays.

        After r rounds the signal has reached about 2 r nodes, and of those within reach one pair in four is
        equal to another, or fewer; so much of each layer is saved. To find them costs as much as some
        thousand multiplications for each pair within reach and round.
        """
        if self.quotient is not None:
            return self.quotient
        if plan is not None:
            return True
        depths = self.phi.depths()
        assert depths is not None
        rounds, pairs = num_rounds(*depths), int(graphs.sizes.square().sum())
        reached = 2 * graphs.num_nodes / max(pairs, 1)  # share of the pairs, in each round
        parts = [*self.phi.layers, *([self.phi.readout] if self.phi.readout is not None else [])]
        saved = 0.0
        for number, part in enumerate(parts):
            behind = min(number + max(depths[0] - 1, 0) + (depths[0] == 0), rounds)
            weights = sum(parameter.numel() for parameter in part.parameters())
            saved += weights * (1 - min(0.75, reached * behind))
        return saved > _REFINING * rounds * min(1.0, reached * rounds)

    def _tap_diagonal(self, rows: PairRows | QuotientRows) -> Tensor | None:
        if self.tap_norm is None:
            return None
        depths = self.phi.depths()
        assert depths is not None
        return self.tap_norm(rows.tap_diagonal(depths[0])[:, 1:])

    def _plan(self, graphs: Graphs, stored: Plan | None) -> Plan:
        depths = self.phi.depths()
        assert depths is not None
        if stored is None:
            return build_plan(
                graphs, *depths, self.gso, separate=self._by_graph, keep_pairs=self.return_pairs
            )
        check_plan(stored, graphs, *depths, self.gso)
        return stored if self._by_graph else merge_plan(stored)

    @property
    def _by_graph(self) -> bool:
        """Whether a norm looks at one graph at a time, so that rows of different graphs differ."""
        return any(isinstance(module, GraphNorm) for module in self.phi.modules())

    def __repr__(self) -> str:
        return self._describe(*(["tap_diagonal=True"] if self.tap_norm is not None else []))


def encode_pairs(
    phi: Phi,
    edge_index: Tensor,
    batch: Tensor | None = None,
    num_nodes: int | None = None,
    gso: str = "sym_laplacian",
    quotient: bool | None = None,
) -> PairEncoding:
    r""":math:`\Phi(G, e_m)_v` of every ordered pair (v, m) of nodes, without a statistic over m.

    >>> import torch
    >>> from graphgps_pearl.pearl import TapLayer
    >>> walk = Phi([TapLayer(1, 3, num_taps=3, act="identity")])
    >>> with torch.no_grad():
    ...     _ = walk.layers[0].weight.copy_(torch.eye(3).unsqueeze(1))
    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> encode_pairs(walk, path, gso="random_walk").to_dense()[0, 0].tolist()  # return to an end of the path
    [1.0, 0.0, 0.5]
    """
    module = BPEARL.from_phi(phi, gso=gso, return_pairs=True, quotient=quotient)
    return module(edge_index, batch, num_nodes)[1]
