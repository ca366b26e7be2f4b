r"""``LapPE``: Laplacian eigenvectors through a network that is symmetric in the eigenpairs.

.. math:: p_v = g\Big(\sum_j f(v_j[v], \lambda_j)\Big)

with :math:`f` an MLP (``DeepSet``) or a Transformer over the node's eigenpairs, :math:`g` an optional MLP.
The sign of an eigenvector is arbitrary, so in training every slot's sign is drawn again for each batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn.norm import BatchNorm

from graphgps_pearl.encoders.mlp import mlp
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.spectral import SpectralEncoder


class LapPE(nn.Module):
    """Eigenvector entries and eigenvalues, one row per (node, eigenvector), to [N, dim_pe].

    Args:
        dim_pe: Width of the encoding.
        layers: Depth of the DeepSet's MLP, or number of Transformer layers.
        heads: Attention heads of a Transformer, which must divide ``dim_pe``; None for a DeepSet.
        post_layers: Depth of the MLP after the sum, 0 for none.
        raw_norm: Whether to batch-normalise entries and eigenvalues (over the real rows of the batch) first.
    """

    def __init__(
        self,
        dim_pe: int,
        layers: int = 2,
        heads: int | None = None,
        post_layers: int = 0,
        raw_norm: bool = False,
    ) -> None:
        super().__init__()
        self.raw_norm = BatchNorm(2, allow_single_element=True) if raw_norm else nn.Identity()
        self.transformer: nn.TransformerEncoder | None = None
        if heads is None:
            self.lift: nn.Module = mlp(2, 2 * dim_pe, dim_pe, layers)
        else:
            self.lift = nn.Linear(2, dim_pe)
            layer = nn.TransformerEncoderLayer(dim_pe, heads, batch_first=True)
            self.transformer = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.post = mlp(dim_pe, 2 * dim_pe, dim_pe, post_layers) if post_layers else nn.Identity()

    def forward(self, eigvals: Tensor, eigvecs: Tensor, pairs: Pairs) -> Tensor:
        """Rows ``eigvals`` [R] and ``eigvecs`` [R] to [N, dim_pe]."""
        if self.training:
            flips = torch.randint(2, (int(pairs.slots.max()),), device=eigvecs.device) * 2 - 1
            eigvecs = eigvecs * flips[pairs.slot]
        rows = self.lift(self.raw_norm(torch.stack((eigvecs, eigvals), dim=1)))
        if self.transformer is not None:
            dense, mask = pairs.padded(rows)
            rows = self.transformer(dense, src_key_padding_mask=~mask)[mask]
        return self.post(pairs.sum_slots(rows))


class LapPENodeEncoder(SpectralEncoder):
    """LapPE for GraphGym; config group ``posenc_LapPE``."""

    name = "LapPE"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> LapPE:
        """Read ``posenc_LapPE``."""
        return LapPE(
            settings.dim_pe,
            settings.layers,
            settings.n_heads if settings.model == "Transformer" else None,
            settings.post_layers,
            settings.raw_norm_type.lower() == "batchnorm",
        )

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.eigvals_LapPE`` and ``batch.eigvecs_LapPE``."""
        eigvals, eigvecs, pairs = self.eigen(batch)
        return self.encoding(pairs.of_graphs(eigvals), eigvecs, pairs)
