r"""``RWSE``: random-walk structural encoding, :math:`p_v = f([(D^{-1}A)^t]_{vv})_{t \in T}`."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.config import kernel_times
from graphgps_pearl.encoders.base import PosEncEncoder
from graphgps_pearl.encoders.mlp import NodeStatistics
from graphgps_pearl.encoders.transforms import AddRandomWalkDiagonal


class RWSENodeEncoder(PosEncEncoder):
    """RWSE for GraphGym; config group ``posenc_RWSE``."""

    name = "RWSE"

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> NodeStatistics:
        """Read ``posenc_RWSE``."""
        return NodeStatistics.from_settings(len(kernel_times(settings.kernel)), settings)

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """The return probabilities."""
        return [AddRandomWalkDiagonal(cls.name, kernel_times(settings.kernel))]

    def encode(self, batch: Batch) -> Tensor:
        """Encode ``batch.pestat_RWSE``."""
        return self.encoding(self.precomputed(batch, "pestat_RWSE"))
