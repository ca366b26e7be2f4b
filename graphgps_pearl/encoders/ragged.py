r"""Rows for pairs (node v, slot j) of a batch without padding.

Graph :math:`i` has :math:`n_i` nodes and :math:`k_i` slots (eigenvectors, or its own nodes again), so
:math:`R = \sum_i n_i k_i` rows in all, node by node: the slots of one node are neighbours in memory.
Eigenvectors are stored in this order, and message passing runs on all slots at once over
:meth:`Pairs.edges`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphgps_pearl.layers.layout import wide_sum


@dataclass(frozen=True)
class Pairs:
    """Which row belongs to which node and slot.

    Attributes:
        batch: Graph of every node [N].
        sizes: Nodes of every graph [B].
        slots: Slots of every graph [B].
        start: First row of every node [N].
        node: Node of every row [R].
        slot: Slot of every row [R].
    """

    batch: Tensor
    sizes: Tensor
    slots: Tensor
    start: Tensor
    node: Tensor
    slot: Tensor

    @classmethod
    def of(cls, batch: Tensor, num_graphs: int, max_slots: int | None = None) -> Pairs:
        """Rows for min(n, max_slots) slots per graph of n nodes (n slots if None)."""
        sizes = torch.bincount(batch, minlength=num_graphs)
        slots = sizes if max_slots is None else sizes.clamp(max=max_slots)
        per_node = slots[batch]
        start = per_node.cumsum(0) - per_node
        node = torch.repeat_interleave(per_node)
        slot = torch.arange(node.numel(), device=batch.device) - start[node]
        return cls(batch, sizes, slots, start, node, slot)

    def edges(self, edge_index: Tensor) -> Tensor:
        """The edge (u, v) once per slot of its graph, between rows (u, j) and (v, j): [2, sum of E_i k_i]."""
        per_edge = self.slots[self.batch[edge_index[0]]]
        edge = torch.repeat_interleave(per_edge)
        slot = torch.arange(edge.numel(), device=edge_index.device) - (per_edge.cumsum(0) - per_edge)[edge]
        return self.start[edge_index[:, edge]] + slot

    def of_graphs(self, values: Tensor) -> Tensor:
        """Values of the graphs' slots, stored flat [sum of k_i, ...], repeated for every row [R, ...]."""
        first = self.slots.cumsum(0) - self.slots
        return values[first[self.batch[self.node]] + self.slot]

    def sum_slots(self, rows: Tensor) -> Tensor:
        """Sum over the slots of every node: [R, d] to [N, d]."""
        return wide_sum(rows, self.node, self.start.numel()).to(rows.dtype)

    def padded(self, rows: Tensor, width: int | None = None) -> tuple[Tensor, Tensor]:
        """Rows as [N, width, d], zeros in the slots that a graph does not have, and the mask of real ones."""
        if width is None:
            width = int(self.slots.max()) if self.slots.numel() else 0
        dense = rows.new_zeros(self.start.numel(), width, rows.size(1))
        dense[self.node, self.slot] = rows
        mask = torch.arange(width, device=rows.device) < self.slots[self.batch][:, None]
        return dense, mask
