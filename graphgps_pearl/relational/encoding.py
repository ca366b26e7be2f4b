r"""PEARL for graphs with several types of nodes and edges, such as a relational database's, on PyG's
``HeteroData``.

The encoding sees no types: all nodes and all edges, each in both directions and once, are one graph G. Then
every type has a linear map of its own to the width of its features, to which the result is added in front of
any heterogeneous network:

.. math:: x_v \leftarrow x_v + W_{t(v)} \, PEARL(G)_v

R-PEARL's samples are a hash of a node's type and number in the whole database (``n_id``), so that a row of a
table has the same ones in every sampled subgraph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.utils import coalesce

from graphgps_pearl.pearl import BPEARL, RPEARL


class HeteroPEARL(nn.Module):
    """Encodings for every type of nodes.

    Args:
        node_types: the types, always in this order.
        dim_out: columns of the result, for all types or by type.
        encoding: R-PEARL or B-PEARL; left out, R-PEARL as the paper sets it for RelBench: 7 taps, 5 GIN
            layers of width 40, 120 samples.

    >>> pe = HeteroPEARL(["user", "item"], 8, RPEARL(4, num_samples=3, hidden_dim=4, num_layers=1)).eval()
    >>> bought = {("user", "bought", "item"): torch.tensor([[0, 0, 1], [0, 1, 1]])}
    >>> {name: list(rows.shape) for name, rows in pe(bought, {"user": 2, "item": 3}).items()}
    {'user': [2, 8], 'item': [3, 8]}
    """

    def __init__(
        self,
        node_types: Sequence[str],
        dim_out: int | Mapping[str, int],
        encoding: RPEARL | BPEARL | None = None,
    ) -> None:
        super().__init__()
        self.node_types = tuple(node_types)
        self.encoding = encoding or RPEARL(40, num_samples=120, hidden_dim=40, num_layers=5, num_taps=7)
        widths = dict.fromkeys(self.node_types, dim_out) if isinstance(dim_out, int) else dict(dim_out)
        if set(widths) != set(self.node_types):
            raise ValueError(f"dim_out has {sorted(widths)}, the node types are {sorted(self.node_types)}")
        # A type's name may hold a point, which names of modules must not.
        self.project = nn.ModuleList(
            nn.Linear(self.encoding.dim_pe, widths[name]) for name in self.node_types
        )

    def forward(
        self,
        edge_index: Mapping[tuple[str, str, str], Tensor] | Any,
        num_nodes: Mapping[str, int] | None = None,
        n_id: Mapping[str, Tensor] | None = None,
        batch: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """The projected encodings by type, :obj:`[N_t, dim_out]`.

        Args:
            edge_index: :obj:`[2, E]` by edge type; or a ``HeteroData``, which has all the arguments that are
                not given.
            num_nodes: :math:`N_t` by type; a type that is not there has none.
            n_id: the nodes' numbers in the whole database by type, for R-PEARL; without it, their positions.
            batch: the subgraph of every node by type, where there are several apart from each other.
        """
        if not isinstance(edge_index, Mapping):
            data = edge_index
            if not hasattr(data, "edge_types"):
                raise ValueError(f"expected edges by type or a HeteroData, got {type(data).__name__}")
            stores = {kind: data[kind] for kind in data.edge_types}
            for kind, store in stores.items():
                if "edge_index" not in store and "adj_t" in store:
                    raise ValueError(f"edges {kind} are stored as adj_t, which is not read; store edge_index")
            edge_index = {kind: store.edge_index for kind, store in stores.items() if "edge_index" in store}
            if num_nodes is None:
                num_nodes = {name: data[name].num_nodes for name in data.node_types}
            n_id = _column(data, "n_id") if n_id is None else n_id
            batch = _column(data, "batch") if batch is None else batch
        if num_nodes is None:
            raise ValueError("edges by type need num_nodes, the number of nodes of each type")
        sizes = self._check(edge_index, num_nodes, {"n_id": n_id, "batch": batch})
        edges = self._flatten(edge_index, sizes)
        graph, order = self._graphs(batch, sizes, edges.device)
        rank = torch.empty_like(order).index_put_((order,), torch.arange(len(order), device=order.device))
        arguments: dict[str, Any] = {}
        if isinstance(self.encoding, RPEARL) and n_id is not None:
            arguments["node_id"] = self._numbers(n_id, sizes, edges.device)[order]
        pe: Any = self.encoding(rank[edges], graph[order], sum(sizes), **arguments)
        pe = (pe if isinstance(pe, Tensor) else pe[0])[rank]
        parts = zip(self.node_types, self.project, pe.split(sizes), strict=True)
        return {name: project(part) for name, project, part in parts if name in num_nodes}

    def _check(
        self,
        edge_index: Mapping[tuple[str, str, str], Tensor],
        num_nodes: Mapping[str, int],
        columns: Mapping[str, Mapping[str, Tensor] | None],
    ) -> list[int]:
        """The number of nodes of each type, where all edges and columns fit."""
        ends = {name for source, _, target in edge_index for name in (source, target)}
        unknown = {*num_nodes, *ends} - {*self.node_types}
        if unknown:
            raise ValueError(f"node types {sorted(unknown)} are none of {', '.join(self.node_types)}")
        sizes = {name: int(num_nodes.get(name) or 0) for name in self.node_types}
        for kind, edges in edge_index.items():
            if edges.dim() != 2 or len(edges) != 2 or edges.is_floating_point():
                found = f"{list(edges.shape)} of {edges.dtype}"
                raise ValueError(f"edges {kind} must hold whole numbers [2, E], got {found}")
            for name, nodes in zip(kind[::2], edges, strict=True):
                if nodes.numel() and not 0 <= int(nodes.min()) <= int(nodes.max()) < sizes[name]:
                    raise ValueError(f"edges {kind} have nodes that {name} with {sizes[name]} has not")
        for key, column in columns.items():
            for name, size in sizes.items():
                length = size if column is None else len(column.get(name, ()))
                if length != size:
                    raise ValueError(f"{key} of {name} has {length} numbers for {size} nodes")
        return list(sizes.values())

    def _flatten(self, edge_index: Mapping[tuple[str, str, str], Tensor], sizes: Sequence[int]) -> Tensor:
        """All edges in both directions, each once, between the nodes of all types, type by type."""
        first = dict(zip(self.node_types, torch.tensor([0, *sizes]).cumsum(0).tolist(), strict=False))
        moved = [
            torch.stack((edges[0] + first[source], edges[1] + first[target]))
            for (source, _, target), edges in edge_index.items()
        ]
        device = next(iter(edge_index.values())).device if edge_index else None
        joined = torch.cat(moved, dim=1) if moved else torch.zeros(2, 0, dtype=torch.long, device=device)
        return coalesce(torch.cat((joined, joined.flip(0)), dim=1), num_nodes=sum(sizes))

    def _graphs(
        self, batch: Mapping[str, Tensor] | None, sizes: Sequence[int], device: torch.device
    ) -> tuple[Tensor, Tensor]:
        """The subgraph of every node [N], and the nodes sorted by it."""
        if batch is None:
            return torch.zeros(sum(sizes), dtype=torch.long, device=device), torch.arange(
                sum(sizes), device=device
            )
        none = torch.zeros(0, dtype=torch.long, device=device)
        graph = torch.cat([batch.get(name, none) for name in self.node_types])
        return graph, graph.argsort(stable=True)

    def _numbers(self, n_id: Mapping[str, Tensor], sizes: Sequence[int], device: torch.device) -> Tensor:
        """One number for every (type, number), the same wherever a node appears."""
        none = torch.zeros(0, dtype=torch.long, device=device)
        types = len(self.node_types)
        return torch.cat([n_id.get(name, none) * types + i for i, name in enumerate(self.node_types)])


def _column(data: Any, key: str) -> dict[str, Tensor] | None:
    """An attribute of all types that have nodes, or None where one lacks it."""
    held = {name: data[name].get(key) for name in data.node_types if data[name].num_nodes}
    return None if any(value is None for value in held.values()) else held
