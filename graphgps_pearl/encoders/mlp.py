"""The plain MLP that the encodings share, and the small network over precomputed columns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

from torch import Tensor, nn
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


class NodeStatistics(nn.Module):
    """Precomputed columns [N, columns] to [N, dim_pe] through a linear map or an MLP.

    Args:
        columns: Number of precomputed columns.
        dim_pe: Width of the encoding.
        layers: Depth of an MLP (linear maps, each followed by ReLU, inner width ``2 * dim_pe``); None for one
            linear map.
        raw_norm: Whether to batch-normalise the columns first.
    """

    def __init__(self, columns: int, dim_pe: int, layers: int | None = None, raw_norm: bool = False) -> None:
        super().__init__()
        self.raw_norm = BatchNorm(columns, allow_single_element=True) if raw_norm else nn.Identity()
        self.pe_encoder: nn.Module = (
            nn.Linear(columns, dim_pe) if layers is None else mlp(columns, 2 * dim_pe, dim_pe, layers)
        )

    @classmethod
    def from_settings(cls, columns: int, settings: Any) -> Self:
        """Read ``dim_pe``, ``model``, ``layers`` and ``raw_norm_type`` of a config group."""
        raw_norm = settings.raw_norm_type.lower() == "batchnorm"
        layers = settings.layers if settings.model == "MLP" else None
        return cls(columns, settings.dim_pe, layers, raw_norm)

    def forward(self, columns: Tensor) -> Tensor:
        """[N, columns] to [N, dim_pe]."""
        return self.pe_encoder(self.raw_norm(columns))
