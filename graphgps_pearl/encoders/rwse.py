r"""``RWSE``: random-walk structural encoding, :math:`p_v = f([(D^{-1}A)^t]_{vv})_{t \in T}`."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn.norm import BatchNorm
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.config import kernel_times
from graphgps_pearl.encoders.base import PosEncEncoder
from graphgps_pearl.encoders.mlp import mlp
from graphgps_pearl.encoders.transforms import AddRandomWalkDiagonal


class RWSE(nn.Module):
    """Return probabilities [N, num_times] to [N, dim_pe] through a linear map or an MLP.

    Args:
        num_times: Number of walk lengths.
        dim_pe: Width of the encoding.
        layers: Depth of an MLP (linear maps, each followed by ReLU, inner width ``2 * dim_pe``); None for one
            linear map.
        raw_norm: Whether to batch-normalise the probabilities first.
    """

    def __init__(
        self, num_times: int, dim_pe: int, layers: int | None = None, raw_norm: bool = False
    ) -> None:
        super().__init__()
        self.raw_norm = BatchNorm(num_times, allow_single_element=True) if raw_norm else nn.Identity()
        self.pe_encoder: nn.Module = (
            nn.Linear(num_times, dim_pe) if layers is None else mlp(num_times, 2 * dim_pe, dim_pe, layers)
        )

    def forward(self, probabilities: Tensor) -> Tensor:
        """[N, num_times] to [N, dim_pe]."""
        return self.pe_encoder(self.raw_norm(probabilities))


class RWSENodeEncoder(PosEncEncoder):
    """RWSE for GraphGym; config group ``posenc_RWSE``."""

    name = "RWSE"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> RWSE:
        """Read ``posenc_RWSE``."""
        raw_norm = settings.raw_norm_type.lower() == "batchnorm"
        layers = settings.layers if settings.model == "MLP" else None
        return RWSE(len(kernel_times(settings.kernel)), settings.dim_pe, layers, raw_norm)

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """The return probabilities."""
        return [AddRandomWalkDiagonal(cls.name, kernel_times(settings.kernel))]

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.pestat_RWSE``."""
        return self.encoding(self.precomputed(batch, "pestat_RWSE"))
