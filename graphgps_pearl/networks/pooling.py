"""From the nodes of each graph to one vector per graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    """Pool packed nodes [N, F] to [B, F], or to [B, k F] where k poolings are concatenated.

    Args:
        functions: a name of :data:`POOLINGS`, several joined by ``+`` (``add+mean``), or functions that are
            called as ``function(x, index)``, one or several.
    """

    def __init__(self, functions: str | Callable[..., Tensor] | Sequence[Callable[..., Tensor]]) -> None:
        super().__init__()
        if isinstance(functions, str):
            functions = [pick(POOLINGS, name, "model.graph_pooling") for name in functions.split("+")]
        self.functions = [functions] if callable(functions) else list(functions)

    def forward(self, x: Tensor, index: Tensor, num_graphs: int) -> Tensor:
        """Pool x [N, F]; PyG's own poolings count graphs without nodes too, as rows of zeros."""
        ours = POOLINGS.values()
        pooled = [
            function(wide(x), index, num_graphs).to(x.dtype) if function in ours else function(x, index)
            for function in self.functions
        ]
        return pooled[0] if len(pooled) == 1 else torch.cat(pooled, dim=1)

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return " + ".join(getattr(function, "__name__", repr(function)) for function in self.functions)
