"""From the nodes of each graph to one vector per graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

POOLINGS: dict[str, Callable[..., Tensor]] = {
    "add": global_add_pool,
    "mean": global_mean_pool,
    "max": global_max_pool,
}


class Pool(nn.Module):
    """Pool packed nodes [N, F] to [B, F].

    Args:
        function: one of :data:`POOLINGS`, or one from GraphGym's registry, called as ``function(x, index)``.
    """

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, batch: Any) -> Tensor:
        """Pool ``batch.x``; PyG's own poolings count graphs without nodes too, as rows of zeros."""
        if self.function in POOLINGS.values():
            return self.function(batch.x, batch.batch, batch.num_graphs)
        return self.function(batch.x, batch.batch)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return getattr(self.function, "__name__", repr(self.function))
