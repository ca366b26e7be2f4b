r"""``SPE`` (Huang et al., ICLR 2024): a stable function of eigenpairs, the same for every eigenbasis.

.. math::
    P = \rho\big(V \operatorname{diag}(\phi_1(\lambda)) V^T, \ldots,
    V \operatorname{diag}(\phi_m(\lambda)) V^T\big)

The :math:`\phi_l` act on the eigenvalues: each on its own (``MLP``) or with a view of all of them
(``DeepSet``). The :math:`m` matrices form :math:`A \in \mathbb{R}^{n \times n \times m}`; :math:`\rho` runs
one GIN on the graph with node features :math:`A_{:,u,:}` for every :math:`u` and sums over :math:`u`. That is
B-PEARL with :math:`A_{:,u,:}` instead of the basis vector :math:`e_u`, so :math:`\rho` is a
:class:`~graphgps_pearl.pearl.Phi` on the same rows.

With the k smallest eigenvalues only, the encoding is independent of the basis as long as the k-th and the
next one differ; otherwise the cut itself chooses a part of an eigenspace. All of them (``max_freqs`` 0) have
no such cut.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from graphgps_pearl.encoders.mlp import mlp
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.spectral import SpectralEncoder
from graphgps_pearl.layers.grouping import group_cost, group_graphs
from graphgps_pearl.layers.layout import wide_sum
from graphgps_pearl.pearl import GINLayer, Phi, check_graphs
from graphgps_pearl.pearl.checks import check_at_least
from graphgps_pearl.pearl.rows import Operators, PairRows
from graphgps_pearl.pearl.statistics import mapped_moments, pair_moments


class EigenvalueNet(nn.Module):
    r"""The :math:`\phi_l` together: eigenvalues of the graphs [S] to [S, dim_out], equivariant in the slots
    of a graph.

    Args:
        hidden: Width of the inner layers.
        dim_out: Number of functions m.
        layers: Number of linear maps, at least 2.
        deepset: Whether each eigenvalue also sees the sum over its graph's eigenvalues, after the first map.
    """

    def __init__(self, hidden: int, dim_out: int, layers: int, deepset: bool = False) -> None:
        super().__init__()
        self.lift = mlp(1, hidden, hidden, 1)
        self.pool = nn.Linear(hidden, hidden, bias=False) if deepset else None
        self.head = mlp(hidden, hidden, dim_out, layers - 1, last_act=False)

    def forward(self, eigvals: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
        """Eigenvalues [S] of graphs ``graph`` [S] to [S, dim_out]."""
        x = self.lift(eigvals[:, None])
        if self.pool is not None:
            x = x + self.pool(wide_sum(x, graph, num_graphs).to(x.dtype))[graph]
        return self.head(x)


class SPE(nn.Module):
    """Eigenpairs of a batch to [N, dim_pe].

    Args:
        dim_pe: Width of the encoding.
        hidden: Width inside the GIN.
        layers: Number of GIN layers, each with two linear maps; the last map comes after the sum over u.
        phi_hidden: Width inside the functions of the eigenvalues.
        phi_out: Number m of these functions.
        phi_layers: Their depth.
        deepset: Whether they see all eigenvalues of the graph.
    """

    def __init__(
        self,
        dim_pe: int,
        hidden: int,
        layers: int,
        phi_hidden: int,
        phi_out: int,
        phi_layers: int,
        deepset: bool = False,
    ) -> None:
        super().__init__()
        check_at_least(1, layers=layers)
        self.phi = EigenvalueNet(phi_hidden, phi_out, phi_layers, deepset)
        widths = [phi_out, *[hidden] * (layers - 1)]
        maps = [*[2] * (layers - 1), 1]
        gin = [GINLayer(width, hidden, mlp_layers=count) for width, count in zip(widths, maps, strict=True)]
        self.rho, self.readout = Phi(gin), nn.Linear(hidden, dim_pe)

    def forward(self, eigvals: Tensor, eigvecs: Tensor, pairs: Pairs, edge_index: Tensor) -> Tensor:
        """Eigenvalues [sum of k_i] and rows ``eigvecs`` [R] to [N, dim_pe]."""
        graph = torch.repeat_interleave(pairs.slots)
        phi = self.phi(eigvals, graph, pairs.sizes.numel())
        graphs = check_graphs(edge_index, pairs.batch, pairs.batch.numel())
        rows = PairRows(Operators(graphs, "adjacency", eigvecs.dtype))
        hidden = self.rho.hidden(filtered_identity(eigvecs, phi, pairs, rows), rows).to(eigvecs.dtype)
        return mapped_moments(pair_moments(hidden, rows, ["sum"]), self.readout).first


def filtered_identity(eigvecs: Tensor, phi: Tensor, pairs: Pairs, rows: PairRows) -> Tensor:
    r"""Rows :math:`A_{vu,l} = \sum_j V_{vj} \phi_l(\lambda_j) V_{uj}` for all pairs of nodes of a graph:
    [sum of n_i², m].

    Args:
        eigvecs: Rows (node, eigenvector) [R].
        phi: Functions of the eigenvalues [sum of k_i, m].
        pairs: Rows (node, eigenvector).
        rows: Rows (node, node).
    """
    by_node = pairs.padded(eigvecs[:, None])[0].squeeze(2)  # [N, k]
    weighted = pairs.padded(eigvecs[:, None] * pairs.of_graphs(phi))[0]  # [N, k, m]
    grouping = group_graphs(pairs.sizes, group_cost(phi.device.type))
    products, first, taken = [phi.new_empty(0, phi.size(1))], [], 0
    for group in grouping.groups:
        n = group.size
        left = by_node[group.nodes].view(-1, n, by_node.size(1))[..., :n]  # [B_g, v, k]
        right = weighted[group.nodes].view(-1, n, *weighted.shape[1:])[:, :, :n]  # [B_g, u, k, m]
        products.append((left @ right.transpose(1, 2).flatten(2)).view(-1, phi.size(1)))  # [B_g v u, m]
        first.append(taken + n * torch.arange(group.nodes.numel(), device=phi.device))
        taken += n * group.nodes.numel()
    padded_row = (torch.cat(first)[grouping.dense_row] - rows.start)[rows.node] + rows.pair_row
    return torch.cat(products).index_select(0, padded_row)


class SPENodeEncoder(SpectralEncoder):
    """SPE for GraphGym; config group ``posenc_SPE``."""

    name = "SPE"
    fewer_rows = False

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> SPE:
        """Read ``posenc_SPE``."""
        return SPE(
            settings.dim_pe,
            settings.post_hidden_dim,
            settings.post_layers,
            settings.phi_hidden_dim,
            settings.phi_out_dim,
            settings.layers,
            deepset=settings.model == "DeepSet",
        )

    @classmethod
    def row_bytes(cls, settings: Any) -> int:
        """Six values of each layer's width."""
        return 24 * settings.post_hidden_dim * settings.post_layers

    @staticmethod
    def num_rows(pairs: Pairs) -> Tensor:
        """All pairs of nodes."""
        return pairs.sizes.square().sum()

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.eigvals_SPE`` and ``batch.eigvecs_SPE``."""
        return self.encoding(*self.eigen(batch), batch.edge_index)
