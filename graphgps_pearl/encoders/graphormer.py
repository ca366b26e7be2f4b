"""``GraphormerBias``: degrees on the nodes, shortest paths as a bias of the attention, and a graph token.

It takes no columns of ``batch.x``: vectors for in-degree and out-degree are added to them. With
``graphormer.use_graph_token`` a node without edges comes in front of every graph's nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, dijkstra
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg as active_cfg
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.contracts import EncoderOutput, Prepared
from graphgps_pearl.encoders.base import precomputed
from graphgps_pearl.encoders.linear import apply_linear, features_of
from graphgps_pearl.errors import DataError
from graphgps_pearl.layers.graphormer import PathBias


def path_types(graph: csr_array, types: NDArray[np.int64], distance: NDArray[np.int64], steps: int) -> Any:
    """The types [n, n, steps] of the edges along a shortest path of every pair, zero behind its end.

    ``types`` [n, n] are those of the edges. Of several shortest paths it is the one that breadth-first search
    finds in the order of the edges, as networkx does for GraphGPS.
    """
    n = len(types)
    before = np.stack([breadth_first_order(graph, i)[1] for i in range(n)])  # [source, node]
    found = np.zeros((n, n, steps), np.int64)
    source, node = np.nonzero(distance > 0)
    target, left = node, distance[source, node]
    while len(source):
        previous = before[source, node]
        kept = left <= steps
        found[source[kept], target[kept], left[kept] - 1] = types[previous[kept], node[kept]]
        more = left > 1
        source, target, node, left = source[more], target[more], previous[more], left[more] - 1
    return found


def edge_types(data: Data) -> NDArray[np.int64]:
    """The types [n, n] of a graph's edges, one whole number each, zero where there is none."""
    n, (source, target) = int(data.num_nodes or 0), data.edge_index.numpy()
    types = np.zeros((n, n), np.int64)
    types[source, target] = data.edge_attr.flatten().numpy()
    limits = np.iinfo(np.int16)  # as which paths are stored
    for kind in (types.min(initial=0), types.max(initial=0)):
        if not limits.min <= kind <= limits.max:
            raise DataError(
                f"edge_attr: GraphormerBias: an edge has type {kind}; expected {limits.min} to {limits.max}, "
                "or floats, which are no types"
            )
    return types


class AddShortestPaths(BaseTransform):
    """Stores ``graphormer_degrees`` [n, 2] and, unless ``degrees_only``, ``graphormer_distance`` [n²] and,
    where edges have one whole number each, ``graphormer_path`` [n², num_distances].

    A distance from ``num_distances`` - 1 on counts as that, none as ``num_distances``. Degrees must stay
    below ``num_in`` and ``num_out``.
    """

    version = 2

    def __init__(self, num_distances: int, num_in: int, num_out: int, degrees_only: bool = False) -> None:
        self.num_distances, self.limits, self.degrees_only = num_distances, (num_in, num_out), degrees_only

    def forward(self, data: Data) -> Data:
        """Add the attributes to one graph."""
        n, edges = int(data.num_nodes or 0), data.edge_index
        source, target = edges.unique(dim=1)
        degrees = torch.stack([end.bincount(minlength=n) for end in (target, source)], dim=1)
        for kind, limit, most in zip(("in", "out"), self.limits, degrees.amax(0).tolist(), strict=True):
            if most >= limit:
                raise DataError(
                    f"posenc_GraphormerBias.num_{kind}_degrees: {limit}, but a node has {kind}-degree "
                    f"{most}; set it to at least {most + 1}"
                )
        data.graphormer_degrees = degrees.to(torch.int32)
        if self.degrees_only:
            return data
        order = edges[0].argsort(stable=True)
        start = torch.cat((edges.new_zeros(1), edges[0].bincount(minlength=n).cumsum(0))).numpy()
        graph = csr_array((np.ones(len(order)), edges[1, order].numpy(), start), (n, n))
        far = self.num_distances
        distance = dijkstra(graph, unweighted=True)
        distance[np.isinf(distance)] = -1  # none
        steps = distance.astype(np.int64)
        data.graphormer_distance = torch.from_numpy(
            np.where(steps < 0, far, steps.clip(max=far - 1)).astype(np.int16).ravel()
        )
        attr = data.edge_attr
        # By the shape, not by the number of values: a graph without edges has none of either.
        if attr is not None and attr.shape[1:].numel() == 1 and not attr.is_floating_point():
            found = path_types(graph, edge_types(data), steps, far - 1)
            found = np.pad(found, ((0, 0), (0, 0), (0, 1))).reshape(n * n, far)
            data.graphormer_path = torch.from_numpy(found.astype(np.int16))
        return data

    def __repr__(self) -> str:
        settings = (self.num_distances, *self.limits, self.degrees_only)
        return f"{type(self).__name__}({', '.join(map(str, settings))}, version={self.version})"


class GraphormerBiasEncoder(nn.Module):
    """Graphormer's encodings for GraphGym; config groups ``posenc_GraphormerBias`` and ``graphormer``.

    Args:
        dim_emb: Width of ``batch.x``.
        expand_x: Whether to map the incoming ``batch.x`` linearly to that width.
        cfg: The config, with the columns of the raw node features in ``share.dim_in``; None = GraphGym's.
    """

    def __init__(self, dim_emb: int, expand_x: bool = True, cfg: Any = None) -> None:
        super().__init__()
        cfg = active_cfg if cfg is None else cfg
        settings, token = cfg.posenc_GraphormerBias, cfg.graphormer.use_graph_token
        self.linear_x = nn.Linear(cfg.share.dim_in, dim_emb) if expand_x else None
        self.num_types = cfg.dataset.edge_encoder_num_types
        self.bias: PathBias | None = None
        if not settings.node_degrees_only:
            heads = cfg.graphormer.num_heads
            self.bias = PathBias(heads, settings.num_spatial_types, self.num_types, token)
        self.in_degree = nn.Embedding(settings.num_in_degrees, dim_emb)
        self.out_degree = nn.Embedding(settings.num_out_degrees, dim_emb)
        self.token = nn.Parameter(torch.empty(1, dim_emb)) if token else None
        self.dropout = nn.Dropout(cfg.graphormer.input_dropout)
        for parameter in (self.in_degree.weight, self.out_degree.weight, self.token):
            if parameter is not None:
                nn.init.normal_(parameter, std=0.02)

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """Degrees and shortest paths."""
        sizes = (settings.num_spatial_types or 0, settings.num_in_degrees, settings.num_out_degrees)
        return [AddShortestPaths(*sizes, settings.node_degrees_only)]

    def forward(self, batch: Batch) -> Batch:
        """Add the degrees to ``batch.x``, attach the bias, and put the tokens in front of the graphs."""
        if self.linear_x is not None:
            batch.x = apply_linear(self.linear_x, features_of(batch, "x", self))
        degrees = precomputed(batch, "graphormer_degrees", "GraphormerBias").long()
        batch.x = batch.x + self.in_degree(degrees[:, 0]) + self.out_degree(degrees[:, 1])
        if self.bias is not None:
            sizes = batch.batch.bincount(minlength=batch.num_graphs)
            distance = precomputed(batch, "graphormer_distance", "GraphormerBias").long()
            bias = self.bias(distance, self._path(batch), sizes)
            EncoderOutput(attention_bias=[bias]).attach(batch)
        if self.token is not None:
            add_tokens(batch, self.token)
        batch.x = self.dropout(batch.x)
        return batch

    def _path(self, batch: Batch) -> Tensor | None:
        if not self.num_types or "graphormer_path" not in batch:
            return None
        path = batch.graphormer_path.long()
        least, most = (int(end) for end in path.aminmax()) if path.numel() else (0, 0)
        if least < 0:
            raise DataError(f"edge_attr: an edge has type {least}; expected 0 to {self.num_types - 1}")
        if most >= self.num_types:
            raise DataError(
                f"dataset.edge_encoder_num_types: {self.num_types}, but an edge has type {most}; "
                f"set it to at least {most + 1}"
            )
        return path


def add_tokens(batch: Batch, token: Tensor) -> None:
    """Put a node with features ``token`` [1, F] and without edges in front of every graph, in place.

    What other encodings have given for the nodes is zero for the token.
    """
    graphs = torch.arange(batch.num_graphs, device=batch.x.device)
    index, order = torch.cat((graphs, batch.batch)).sort(stable=True)

    def with_zeros(rows: Tensor) -> Tensor:
        return torch.cat((rows.new_zeros(len(graphs), rows.size(1)), rows))[order]

    EncoderOutput.map_per_layer(batch, with_zeros)
    for key, value in list(batch):
        if key.startswith("pe_"):
            batch[key] = with_zeros(value)
    shift = batch.batch + 1
    batch.edge_index = batch.edge_index + shift[batch.edge_index]
    batch.x = torch.cat((token.expand(len(graphs), -1), batch.x))[order]
    batch.batch = index
    if "ptr" in batch:
        batch.ptr = batch.ptr + torch.arange(len(batch.ptr), device=batch.ptr.device)
    Prepared({}).attach(batch)  # what was prepared knows nothing of the tokens
