r"""Plans stored with their graphs: a PyG transform, and the way back from a batch.

A graph's plan is a handful of flat integer vectors, numbered within the graph. PyG's collation joins them one
graph after the other and need not know what they mean, so plain :class:`~torch_geometric.data.Data` carries
them through loaders, workers, files and ``to_data_list``. :func:`stored_plan` adds the graphs' offsets, once
for the whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.pearl.colours import Level
from graphgps_pearl.pearl.graphs import check_graphs
from graphgps_pearl.pearl.gso import GSOS
from graphgps_pearl.pearl.names import check_name
from graphgps_pearl.pearl.plan import Plan, build_plan, fingerprint, needs_degrees, num_rounds

_FORMAT = 2  # raise it when plans of before cannot be read any more
_HEAD = 4  # format, K, L, degrees; then the rows of each round


@functional_transform("bpearl_plan")
class BPEARLPlan(BaseTransform):
    r"""Stores with each graph which rows of B-PEARL are equal, so that training need not find it again.

    The plan depends on the graph, on K, L and on whether the operator divides by degrees; nothing else of the
    encoding. Whole numbers of 32 bits, no matrix and no transpose.

    Args:
        num_taps: K of the encoding.
        num_layers: L, its GIN layers.
        gso: its operator.
        pairs: store the row of every pair too, for encodings that use the pairs (``return_pairs``).

    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> data = BPEARLPlan(num_taps=1, num_layers=2)(Data(edge_index=ring, num_nodes=4))
    >>> [level.parent.numel() for level in stored_plan(data).levels]
    [3, 3]
    """

    def __init__(
        self, num_taps: int = 1, num_layers: int = 4, gso: str = "sym_laplacian", pairs: bool = False
    ) -> None:
        check_name("gso", gso, GSOS)
        if num_taps < 0 or num_layers < 0 or num_taps + num_layers == 0:
            raise ValueError(f"num_taps={num_taps} and num_layers={num_layers} are no encoding")
        self.num_taps, self.num_layers, self.gso, self.pairs = num_taps, num_layers, gso, pairs

    def forward(self, data: Data) -> Data:
        """Add the plan to a graph."""
        graphs = check_graphs(data.edge_index, num_nodes=data.num_nodes)
        plan = build_plan(graphs, self.num_taps, self.num_layers, self.gso, keep_pairs=self.pairs)
        rows = [plan.signal.numel(), *(level.parent.numel() for level in plan.levels)]
        head = [_FORMAT, plan.num_taps, plan.num_layers, int(plan.degrees), *rows]
        data.bpearl_head = torch.tensor(head, dtype=torch.int32)
        data.bpearl_edges = fingerprint(graphs)
        data.bpearl_start = (2 * plan.out_degree + plan.signal).int()
        for name in ("parent", "degree", "neighbour"):
            parts = [getattr(level, name) for level in plan.levels]
            data[f"bpearl_{name}"] = torch.cat(parts).int() if parts else torch.empty(0, dtype=torch.int32)
        data.bpearl_pool_size = plan.pool_size.int()
        data.bpearl_pool_row = plan.pool_row.int()
        data.bpearl_pool_count = plan.pool_count.int()
        data.bpearl_diagonal = plan.diagonal.int()
        if plan.pair_row is not None:
            data.bpearl_pair_row = plan.pair_row.int()
        return data

    def __repr__(self) -> str:
        degrees = needs_degrees(self.num_taps, self.gso)
        return (
            f"{type(self).__name__}(num_taps={self.num_taps}, num_layers={self.num_layers}, "
            f"degrees={degrees}, pairs={self.pairs}, format={_FORMAT})"
        )


def stored_plan(data: Data) -> Plan | None:
    """The plan of a graph or a batch of graphs, or None where there is none."""
    if "bpearl_head" not in data:
        return None
    head = data.bpearl_head.long()
    rounds = num_rounds(int(head[1]), int(head[2])) if head.numel() > 2 else 0
    head = head.view(-1, _HEAD + rounds + 1) if head.numel() % (_HEAD + rounds + 1) == 0 else head.view(1, -1)
    if head.size(1) != _HEAD + rounds + 1 or bool((head[:, :_HEAD] != head[0, :_HEAD]).any()):
        raise ValueError("the graphs of this batch have B-PEARL plans of different settings")
    if int(head[0, 0]) != _FORMAT:
        raise ValueError("this B-PEARL plan is of another version: apply BPEARLPlan again")
    rows = head[:, _HEAD:]  # [B, rounds + 1]
    start = data.bpearl_start.long()
    levels = _levels(rows, data.bpearl_parent, data.bpearl_degree, data.bpearl_neighbour)
    pool_size, last = data.bpearl_pool_size.long(), rows[:, -1]
    before = last.cumsum(0) - last
    nodes = _per_graph(torch.ones_like(pool_size), data)
    return Plan(
        num_taps=int(head[0, 1]),
        num_layers=int(head[0, 2]),
        degrees=bool(head[0, 3]),
        separate=True,
        signal=start % 2,
        out_degree=start // 2,
        levels=levels,
        pool_size=pool_size,
        pool_row=data.bpearl_pool_row.long() + before.repeat_interleave(_per_graph(pool_size, data)),
        pool_count=data.bpearl_pool_count.long(),
        diagonal=data.bpearl_diagonal.long() + before.repeat_interleave(nodes),
        pair_row=(
            data.bpearl_pair_row.long() + before.repeat_interleave(nodes.square())
            if "bpearl_pair_row" in data
            else None
        ),
        edges=data.bpearl_edges,
    )


def _per_graph(size: Tensor, data: Data) -> Tensor:
    """Sums over the nodes of each graph, :obj:`[B]`."""
    if getattr(data, "batch", None) is None:
        return size.sum().unsqueeze(0)
    return size.new_zeros(data.bpearl_edges.numel()).index_add_(0, data.batch, size)


def _levels(rows: Tensor, parent: Tensor, degree: Tensor, neighbour: Tensor) -> tuple[Level, ...]:
    """The graphs' levels joined, round by round, each graph's numbers behind those of the graphs before."""
    num_graphs, rounds = rows.size(0), rows.size(1) - 1
    own = rows[:, 1:].flatten().tolist()
    parents, degrees = parent.split(own), degree.split(own)
    around = [int(part.sum()) for part in degrees]
    neighbours = neighbour.split(around)
    entries = torch.tensor(around, device=rows.device).view(num_graphs, rounds)
    before = rows.cumsum(0) - rows  # [B, rounds + 1]
    return tuple(
        Level(
            torch.cat(parents[r::rounds]).long() + before[:, r].repeat_interleave(rows[:, r + 1]),
            torch.cat(degrees[r::rounds]).long(),
            torch.cat(neighbours[r::rounds]).long() + before[:, r].repeat_interleave(entries[:, r]),
        )
        for r in range(rounds)
    )
