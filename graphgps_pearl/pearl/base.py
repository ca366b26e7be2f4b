r"""What both encodings are: one :math:`\Phi`, applied to many signals, and a statistic over the results.

.. math:: P = \rho\big(\Phi(G, q^{(1)}), \dots, \Phi(G, q^{(M)})\big) \in R^{N \times d_p}
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl.checks import check_name
from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.norm import BatchNorm, NoNorm
from graphgps_pearl.pearl.phi import Phi
from graphgps_pearl.pearl.statistics import Moments, parse_pool, statistics
from graphgps_pearl.vocabulary import OPERATORS, PAIR_POOLS, POOLS


class PEARL(nn.Module):
    r"""Base of the two encodings: :math:`\Phi`, an operator S, a statistic :math:`\rho`, optional scaling."""

    pools: ClassVar[tuple[str, ...]] = POOLS
    phi: Phi
    project: nn.Linear | None
    tap_norm: BatchNorm | NoNorm | None

    def __init__(self, phi: Phi, *, gso: str, pool: str, scale: bool, more_columns: int = 0) -> None:
        super().__init__()
        check_name("gso", gso, OPERATORS)
        if phi.layers[0].in_dim != 1:
            raise ValueError(f"phi has to take scalar signals, but its first layer is {phi.layers[0]!r}")
        self.phi, self.gso, self.pool, self.scale = phi, gso, parse_pool(pool, self.pools), scale
        self.dim_pe = phi.out_dim
        width = len(self.pool) * self.dim_pe + more_columns
        self.project = nn.Linear(width, self.dim_pe) if width > self.dim_pe else None

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for module in (self.phi, self.project, self.tap_norm):
            if module is not None:
                module.reset_parameters()

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.phi.parameters()).dtype

    def prepare(
        self,
        edge_index: Tensor | Any,
        batch: Tensor | None = None,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> Graphs:
        """All that the encoding computes from the graphs alone, before any weight or sample comes in.

        ``module(module.prepare(...))`` is ``module(...)``. It is work for a CPU that can be done while a
        batch is collated; :func:`graphgps_pearl.packing.pack` moves the result to another device.
        """
        return check_graphs(edge_index, batch, num_nodes, edge_weight).prepare(self._name, self._constant)

    @property
    def _name(self) -> str:
        """Names what :meth:`prepare` gives."""
        return f"{self!r} in {self._dtype}"

    def _constant(self, graphs: Graphs) -> Any:
        raise NotImplementedError

    def _pooled(self, moments: Moments, more: Tensor | None = None) -> Tensor:
        """The statistics, with ``more`` columns, projected to ``dim_pe`` where there are more than that."""
        pe = statistics(moments, self.pool)  # [N, len(pool) * dim_pe]
        if more is not None:
            pe = torch.cat([pe, more], dim=1)
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
            f"scale={self.scale}",
            f"phi={self.phi!r}",
        ]
        return f"{type(self).__name__}({', '.join(parts)})"


def readout_has_bias(pool: str) -> bool:
    """Whether a constant added to every sample changes the statistics (var and std ignore it)."""
    return not set(parse_pool(pool, PAIR_POOLS)) <= {"var", "std"}


def check_taps(option: str, wanted: bool, num_taps: int) -> None:
    """Refuse an option that reads powers of the operator where there are none."""
    if wanted and num_taps < 2:
        raise ValueError(
            f"{option} needs num_taps of at least 2, got {num_taps}: the diagonal of S^0 is 1 for all nodes"
        )


def make_tap_norm(columns: int, norm: str) -> BatchNorm | NoNorm | None:
    """Batch norm of columns made of taps. Taps are data: their statistics do not lag behind any weights."""
    if not columns:
        return None
    return NoNorm() if norm == "none" else BatchNorm(columns)
