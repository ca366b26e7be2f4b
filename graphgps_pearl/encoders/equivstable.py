r"""``EquivStableLapPE`` (PEG, Wang et al., ICLR 2022): eigenvectors act on the edges, through distances.

The encoding :math:`p_v = W v_{1..k}[v]` takes no columns of ``batch.x``. Local message passing reads
``batch.pe_EquivStableLapPE`` and weighs the edge (u, v) by a function of :math:`\|p_u - p_v\|^2`. Only
differences count, so there is no bias here: it would never receive a gradient.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn.norm import BatchNorm

from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.spectral import SpectralEncoder


class EquivStableLapPE(nn.Module):
    """Eigenvector entries, one row per (node, eigenvector), to [N, dim].

    Args:
        max_freqs: Number of eigenvectors (zeros where a small graph has fewer).
        dim: Width of the encoding.
        raw_norm: Whether to batch-normalise the entries first.
    """

    def __init__(self, max_freqs: int, dim: int, raw_norm: bool = False) -> None:
        super().__init__()
        self.raw_norm = (
            BatchNorm(max_freqs, affine=False, allow_single_element=True) if raw_norm else nn.Identity()
        )
        self.linear = nn.Linear(max_freqs, dim, bias=False)

    def forward(self, eigvecs: Tensor, pairs: Pairs) -> Tensor:
        """Rows ``eigvecs`` [R] to [N, dim]."""
        entries, mask = pairs.padded(eigvecs[:, None], self.linear.in_features)
        return self.linear(self.raw_norm(entries[..., 0]) * mask)


class EquivStableLapPENodeEncoder(SpectralEncoder):
    """PEG for GraphGym; config group ``posenc_EquivStableLapPE``."""

    name = "EquivStableLapPE"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> EquivStableLapPE:
        """Read ``posenc_EquivStableLapPE``."""
        return EquivStableLapPE(
            settings.eigen.max_freqs, dim_emb, settings.raw_norm_type.lower() == "batchnorm"
        )

    @classmethod
    def columns(cls, settings: Any) -> int:
        """None: the encoding is not part of ``batch.x``."""
        return 0

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.eigvecs_EquivStableLapPE``."""
        _, eigvecs, pairs = self.eigen(batch)
        return self.encoding(eigvecs, pairs)
