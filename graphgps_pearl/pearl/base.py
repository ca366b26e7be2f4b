r"""What R-PEARL and B-PEARL share: a :math:`\Phi`, an operator, a statistic over the samples."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl.graphs import Graphs
from graphgps_pearl.pearl.gso import GSOS
from graphgps_pearl.pearl.names import check_name
from graphgps_pearl.pearl.phi import Phi
from graphgps_pearl.pearl.pooling import PAIR_POOLS, POOLS, Moments, parse_pool, statistics


class PEARL(nn.Module):
    r"""Base of the two encodings: :math:`P = \rho(\Phi(G, q^{(1)}), \dots, \Phi(G, q^{(M)}))`."""

    pools: ClassVar[tuple[str, ...]] = POOLS
    phi: Phi
    project: nn.Linear | None

    def __init__(self, phi: Phi, *, gso: str, pool: str, scale: bool, beside: int = 0) -> None:
        super().__init__()
        check_name("gso", gso, GSOS)
        if phi.layers[0].in_dim != 1:
            raise ValueError(f"phi has to take scalar signals, but its first layer is {phi.layers[0]!r}")
        self.phi, self.gso, self.pool, self.scale = phi, gso, parse_pool(pool, self.pools), scale
        self.dim_pe = phi.out_dim
        width = len(self.pool) * self.dim_pe + beside  # columns beside the statistics
        self.project = nn.Linear(width, self.dim_pe) if width > self.dim_pe else None

    def reset_parameters(self) -> None:
        """Draw all weights afresh."""
        self.phi.reset_parameters()
        if self.project is not None:
            self.project.reset_parameters()

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.phi.parameters()).dtype

    def _pooled(self, moments: Moments, beside: Tensor | None = None) -> Tensor:
        pe = statistics(moments, self.pool)  # [N, len(pool) * dim_pe]
        if beside is not None:
            pe = torch.cat([pe, beside], dim=1)
        return pe if self.project is None else self.project(pe).to(pe.dtype)

    def _scaled(self, pe: Tensor, graphs: Graphs) -> Tensor:
        if not self.scale:
            return pe
        return pe / (graphs.node_sizes.to(pe.dtype).sqrt() * len(self.phi.layers)).unsqueeze(1)

    def _describe(self, *more: str) -> str:
        parts = [
            str(self.dim_pe),
            *more,
            f"gso={self.gso!r}",
            f"pool={'+'.join(self.pool)!r}",
            *(["scale=True"] if self.scale else []),
            f"phi={self.phi!r}",
        ]
        return f"{type(self).__name__}({', '.join(parts)})"


def readout_has_bias(pool: str) -> bool:
    """Whether a constant added to every sample reaches the statistics (spreads do not see it)."""
    return not set(parse_pool(pool, PAIR_POOLS)) <= {"var", "std"}
