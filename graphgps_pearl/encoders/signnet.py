r"""``SignNet`` (Lim et al., ICLR 2023): a function of eigenvectors that no choice of their signs can change.

.. math:: P = \rho\big([\phi(v_j) + \phi(-v_j)]_{j=1}^k\big)

with :math:`\phi` a GIN on one eigenvector as node signal, and :math:`\rho` an MLP on the concatenated slots
(``MLP``, a fixed number of them) or on their sum (``DeepSet``, any number of them).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from graphgps_pearl.encoders.gin import GIN
from graphgps_pearl.encoders.mlp import mlp
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.spectral import SpectralEncoder


class SignNet(nn.Module):
    """Eigenvector entries, one row per (node, eigenvector), to [N, dim_pe].

    Args:
        dim_pe: Width of the encoding.
        phi_hidden: Width inside the GIN and the MLP.
        phi_out: Width of each slot after the GIN.
        layers: Number of GIN layers.
        post_layers: Depth of the MLP.
        num_slots: Concatenate this many slots (a graph with fewer has zeros there); None sums over any
            number.
    """

    def __init__(
        self,
        dim_pe: int,
        phi_hidden: int,
        phi_out: int,
        layers: int,
        post_layers: int,
        num_slots: int | None = None,
    ) -> None:
        super().__init__()
        self.num_slots = num_slots
        self.phi = GIN(1, phi_hidden, phi_out, layers)
        self.rho = mlp(phi_out * (num_slots or 1), phi_hidden, dim_pe, post_layers, last_act=False, norm=True)

    def forward(self, eigvecs: Tensor, pairs: Pairs, edge_index: Tensor) -> Tensor:
        """Rows ``eigvecs`` [R] to [N, dim_pe]."""
        edges = pairs.edges(edge_index)
        # Both signs in one pass: the batch norms then see the same rows whatever the signs, in training too.
        signal = torch.cat((eigvecs, -eigvecs))[:, None]
        plus, minus = self.phi(signal, torch.cat((edges, edges + eigvecs.numel()), dim=1)).chunk(2)
        rows = plus + minus
        if self.num_slots is None:
            return self.rho(pairs.sum_slots(rows))
        return self.rho(pairs.padded(rows, self.num_slots)[0].flatten(1))


class SignNetNodeEncoder(SpectralEncoder):
    """SignNet for GraphGym; config group ``posenc_SignNet``."""

    name = "SignNet"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> SignNet:
        """Read ``posenc_SignNet``."""
        return SignNet(
            settings.dim_pe,
            settings.phi_hidden_dim,
            settings.phi_out_dim,
            settings.layers,
            settings.post_layers,
            cls.slots(settings.eigen) if settings.model == "MLP" else None,
        )

    @classmethod
    def row_bytes(cls, settings: Any) -> int:
        """Six values of each layer's width, for both signs."""
        return 48 * settings.phi_hidden_dim * settings.layers

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.eigvecs_SignNet``."""
        _, eigvecs, pairs = self.eigen(batch)
        return self.encoding(eigvecs, pairs, batch.edge_index)
