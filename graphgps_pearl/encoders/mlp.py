"""The plain MLP that the encodings share."""

from __future__ import annotations

from itertools import pairwise

from torch import nn
from torch_geometric.nn.norm import BatchNorm


def mlp(
    dim_in: int, hidden: int, dim_out: int, layers: int, *, last_act: bool = True, norm: bool = False
) -> nn.Sequential:
    """``layers`` linear maps ``dim_in -> hidden -> ... -> hidden -> dim_out`` with ReLU between them.

    Args:
        dim_in: Width of the input.
        hidden: Width between the maps.
        dim_out: Width of the output.
        layers: Number of linear maps, at least 1.
        last_act: ReLU after the last map too, as GraphGPS's encoders have it.
        norm: Batch norm before every ReLU; the map in front of it then has no bias.

    >>> mlp(3, 8, 4, 2, last_act=False)
    Sequential(
      (0): Linear(in_features=3, out_features=8, bias=True)
      (1): ReLU()
      (2): Linear(in_features=8, out_features=4, bias=True)
    )
    """
    if layers < 1:
        raise ValueError(f"an MLP needs at least one layer, got {layers}")
    widths = [dim_in, *[hidden] * (layers - 1), dim_out]
    modules: list[nn.Module] = []
    for i, (before, after) in enumerate(pairwise(widths)):
        act = last_act or i < layers - 1
        modules.append(nn.Linear(before, after, bias=not (norm and act)))
        if act:
            modules += [BatchNorm(after, allow_single_element=True), nn.ReLU()] if norm else [nn.ReLU()]
    return nn.Sequential(*modules)
