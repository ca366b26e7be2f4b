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
from graphgps_pearl.errors import ConfigError


class RWSE(nn.Module):
    """Return probabilities [N, num_times] to [N, dim_pe] through a linear map or an MLP.

    Args:
        num_times: Number of walk lengths.
        dim_pe: Width of the encoding.
        model: ``Linear`` or ``MLP`` (``layers`` linear maps, each followed by ReLU, inner width ``2 *
            dim_pe``).
        layers: Depth of the MLP.
        raw_norm: Whether to batch-normalise the probabilities first.
    """

    def __init__(
        self, num_times: int, dim_pe: int, model: str = "Linear", layers: int = 3, raw_norm: bool = False
    ) -> None:
        super().__init__()
        self.raw_norm = BatchNorm(num_times, allow_single_element=True) if raw_norm else nn.Identity()
        self.pe_encoder: nn.Module
        if model.lower() == "linear":
            self.pe_encoder = nn.Linear(num_times, dim_pe)
        elif model.lower() == "mlp":
            self.pe_encoder = mlp(num_times, 2 * dim_pe, dim_pe, layers)
        else:
            raise ValueError(f"model is {model!r}; choose Linear or MLP")

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
        return RWSE(len(walk_times(settings)), settings.dim_pe, settings.model, settings.layers, raw_norm)

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """The return probabilities."""
        return [AddRandomWalkDiagonal(cls.name, walk_times(settings))]

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.pestat_RWSE``."""
        return self.encoding(self.precomputed(batch, "pestat_RWSE"))


def walk_times(settings: Any) -> list[int]:
    """The walk lengths of ``posenc_RWSE.kernel``."""
    times = kernel_times(settings.kernel)
    if not times:
        raise ConfigError(
            "posenc_RWSE.kernel has no times: set kernel.times_func (such as range(1,21)) or kernel.times"
        )
    return times
