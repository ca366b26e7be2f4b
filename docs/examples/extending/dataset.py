"""A dataset in one file: what is known of it before it is read, what its cache depends on, its graphs."""

from typing import Any

import torch
from torch_geometric.data import Data

from graphgps_pearl.data import DatasetSpec, Items, Source, register_dataset


@register_dataset("toy", "cycles")
class Cycles(Source):
    """Cycles of 3 to 20 nodes; the target is the number of nodes."""

    reads_files = False
    own_split_modes = ()  # dataset.split_mode makes the split

    def spec(self) -> DatasetSpec:
        """One feature column, no edge features, one target."""
        return DatasetSpec("cycles", "regression", dim_in=1, edge_dim=0, dim_out=1, target_names=("nodes",))

    def fingerprint(self) -> dict[str, Any]:
        """Nothing but the code, whose changes ``version`` counts."""
        return {}

    def items(self) -> Items:
        """60 cycles."""
        return Items("cycles", 60, lambda i: cycle(3 + i % 18), lambda i: f"cycle {i}")


def cycle(size: int) -> Data:
    """A cycle, its edges in both directions."""
    nodes = torch.arange(size)
    one_way = torch.stack((nodes, (nodes + 1) % size))
    edge_index = torch.cat((one_way, one_way.flip(0)), dim=1)
    return Data(x=torch.ones(size, 1), edge_index=edge_index, y=torch.tensor([[float(size)]]))
