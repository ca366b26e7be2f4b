"""B-PEARL (eq. 6): the standard basis, and the sum over it."""

from __future__ import annotations

from typing import Any, Self

from torch import Tensor

from graphgps_pearl.pearl.base import PEARL, check_taps, make_tap_norm, readout_has_bias
from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.hooks import pair_rows
from graphgps_pearl.pearl.pairs import PairEncoding
from graphgps_pearl.pearl.phi import Phi, TapLayer, build_phi
from graphgps_pearl.pearl.statistics import is_linear, mapped_moments, pair_moments
from graphgps_pearl.vocabulary import PAIR_POOLS


class BPEARL(PEARL):
    r"""The B-PEARL positional encoding from `"Learning Efficient Positional Encodings with Graph Neural
    Networks" <https://arxiv.org/abs/2502.01122>`_

    .. math:: P_v = \sum_{m=1}^{n} \Phi(G, e_m)_v

    with :math:`e_m` the standard basis of a graph with :math:`n` nodes. It commutes with permutations of the
    nodes exactly. Written out, cost is :math:`\Theta(n^2 F^2 + n |E| F)` and memory :math:`\Theta(n^2 F)` for
    each graph; with equal rows merged both grow with the number of different neighbourhoods.

    Before the sum there is a value for every ordered pair of nodes. ``pool="sum+self"`` adds the diagonal
    :math:`\Phi(G, e_v)_v` to the sum's columns, ``return_pairs`` gives all of them.

    Args:
        dim_pe: columns of the encoding.
        hidden_dim: width F of :math:`\Phi`.
        num_layers: number of GIN layers.
        num_taps: K of the generalised layer before them; 1 lifts the signal pointwise, 0 omits it.
        gso: the operator S of the generalised layer: ``adjacency``, ``laplacian``, ``sym_adjacency``,
            ``sym_laplacian`` or ``random_walk``.
        mlp_layers: linear maps in each GIN layer's MLP.
        mlp_hidden: width inside that MLP; ``hidden_dim`` unless given.
        norm: ``batch``, ``layer``, ``none``; or ``graph``: batch norm, in the generalised layer over one
            graph at a time.
        skip: ``none``, ``residual`` (X + f(X)) or ``sum`` (the sum of all layers' outputs).
        act: name of the activation.
        end: how GIN layers end: ``activation``, or ``linear`` (no activation, and the last layer's linear map
            instead of a readout, as in the authors' code).
        pool: statistic over m: ``sum``, ``mean``, ``var``, ``std``, ``max``, ``self`` (the term m = v), or
            several joined by ``+``, which one linear layer projects to ``dim_pe`` columns.
        scale: divide by :math:`\sqrt{n} L`, n the nodes of the graph and L the layers of :math:`\Phi` (remark
            after the paper's stability corollary). The columns are then of order 1 whatever the size of the
            graph; ``scale=False`` is the plain sum of eq. 6.
        tap_diagonal: append the taps' own diagonal :math:`(S^k)_{vv}`, k = 1 to K - 1, normalised, to the
            statistics before they are projected. With the random-walk operator it is RWSE.
        return_pairs: return ``(P, pairs)``, the second a :class:`~graphgps_pearl.pearl.PairEncoding`.
        quotient: compute pairs (v, m) that must be equal only once; the result and its gradients are those
            of all pairs. None: where it is faster.

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
        scale: bool = True,
        tap_diagonal: bool = False,
        return_pairs: bool = False,
        quotient: bool | None = None,
        end: str = "activation",
    ) -> None:
        check_taps("tap_diagonal", tap_diagonal, num_taps)
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
            end=end,
            bias=readout_has_bias(pool),
        )
        more = num_taps - 1 if tap_diagonal else 0
        super().__init__(phi, gso=gso, pool=pool, scale=scale, more_columns=more)
        self.num_taps, self.quotient, self.return_pairs = num_taps, quotient, return_pairs
        self.tap_norm = make_tap_norm(more, norm)

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
        r"""The encoding with a given :math:`\Phi`, such as a stack of generalised layers.

        The plain sum unless ``scale=True``. Equal pairs are merged if GIN layers follow at most one
        generalised layer; other stacks use all pairs.
        """
        module = cls.__new__(cls)
        PEARL.__init__(module, phi, gso=gso, pool=pool, scale=scale)
        module.num_taps, module.quotient, module.return_pairs = 0, quotient, return_pairs
        module.tap_norm = None
        return module

    def forward(
        self,
        edge_index: Tensor | Any,
        batch: Tensor | None = None,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, PairEncoding]:
        """The encoding of every node, :obj:`[N, dim_pe]`, and all pairs where ``return_pairs``.

        Args:
            edge_index: :obj:`[2, E]`; or a PyG ``Data`` or ``Batch``, which has all the arguments; or what
                :meth:`prepare` gave.
            batch: the graph of every node, :obj:`[N]`, sorted; None: one graph.
            num_nodes: N.
            edge_weight: :obj:`[E]`, not negative; the operators and the sums over neighbours are weighted.
        """
        graphs = check_graphs(edge_index, batch, num_nodes, edge_weight)
        rows = self.rows(graphs)
        hidden, readout = self.phi.hidden(rows.signal, rows.layers).to(self._dtype), self.phi.readout
        # On a GPU one product of all rows is quicker than several of a few.
        if readout is not None and not (is_linear(self.pool) and hidden.device.type == "cpu"):
            hidden, readout = readout(hidden).to(self._dtype), None
        moments = pair_moments(hidden, rows, self.pool)
        if readout is not None:
            moments = mapped_moments(moments, readout)
        taps = None
        if self.tap_norm is not None:
            taps = self.tap_norm(rows.tap_diagonal(self.num_taps)[:, 1:])
        pe = self._scaled(self._pooled(moments, taps), graphs)
        return (pe, PairEncoding(hidden, rows.pair_row, graphs, readout)) if self.return_pairs else pe

    def rows(self, graphs: Graphs) -> Any:
        """The rows that :math:`\\Phi` works on; made by :meth:`prepare`, or now."""
        return graphs.get(self._name, self._constant)

    def _constant(self, graphs: Graphs) -> Any:
        """The rows, with the taps of their signal."""
        rows = pair_rows(self.phi, graphs, self.gso, self._dtype, self.quotient, self.return_pairs)
        if isinstance(self.phi.layers[0], TapLayer):
            rows.first.taps(rows.signal, self.phi.layers[0].num_taps)
        return rows

    def __repr__(self) -> str:
        more = ["tap_diagonal=True"] if self.tap_norm is not None else []
        if self.return_pairs:
            more.append("return_pairs=True")
        if self.quotient is not None:
            more.append(f"quotient={self.quotient}")
        return self._describe(*more)
