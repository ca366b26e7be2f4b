"""From the nodes of each graph to one vector per graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

from graphgps_pearl.layers import pick
from graphgps_pearl.layers.layout import wide


def first_node(x: Tensor, index: Tensor, num_graphs: int) -> Tensor:
    """The first node of every graph, which is the graph token where there is one."""
    return x[torch.searchsorted(index, torch.arange(num_graphs, device=index.device))]


POOLINGS: dict[str, Callable[..., Tensor]] = {
    "add": global_add_pool,
    "mean": global_mean_pool,
    "max": global_max_pool,
    "graph_token": first_node,
}


class Pool(nn.Module):
    """Pool packed nodes [N, F] to [B, F].

    Args:
        function: a name of :data:`POOLINGS`, or a function that is called as ``function(x, index)``.
    """

    def __init__(self, function: str | Callable[..., Tensor]) -> None:
        super().__init__()
        if isinstance(function, str):
            function = pick(POOLINGS, function, "model.graph_pooling")
        self.function = function

    def forward(self, x: Tensor, index: Tensor, num_graphs: int) -> Tensor:
        """Pool x [N, F]; PyG's own poolings count graphs without nodes too, as rows of zeros."""
        if self.function in POOLINGS.values():
            return self.function(wide(x), index, num_graphs).to(x.dtype)
        return self.function(x, index)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return getattr(self.function, "__name__", repr(self.function))
