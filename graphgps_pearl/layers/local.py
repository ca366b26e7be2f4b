"""Local message passing by name: PyG's convolutions and GatedGCN behind one call.

Every local model is called as ``update, edge_attr = model(x, edge_index, edge_attr, layout)`` with nodes
[N, F] and edges [E, D]; it gives the update of the nodes, before dropout and residual, and the edge features
for the next layer.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg_nn
from torch_geometric.nn.conv import MessagePassing
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.nn.inits import reset
from torch_geometric.utils import add_self_loops, remove_self_loops

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers.attention import check_heads
from graphgps_pearl.layers.gated_gcn import DistanceGate, GatedGCN
from graphgps_pearl.layers.kernels import compiled_layer
from graphgps_pearl.layers.layout import Layout, wide_sum
from graphgps_pearl.layers.linear import Linear
from graphgps_pearl.layers.names import Activation, activation, pick
from graphgps_pearl.switches import kernels_enabled
from graphgps_pearl.vocabulary import READ_NO_EDGES


@dataclass(frozen=True)
class LocalSettings:
    """What a local model is made from; each kind uses what it needs.

    Attributes:
        dim: width of the nodes, in and out.
        edge_dim: width of the edge features, None where there are none.
        heads: of GAT.
        act: activation inside GIN, GINE and GatedGCN.
        dropout: of GatedGCN's edge update.
        residual: whether GatedGCN's edges keep what they were.
        update_edges: whether a later layer reads the edge features that GatedGCN makes.
        equivstable_pe: whether messages are weighed by the distance of encodings (GINE and GatedGCN).
        pna_degrees: histogram of in-degrees in the training data, empty if it comes later.
    """

    dim: int
    edge_dim: int | None = None
    heads: int = 1
    act: Activation = "relu"
    dropout: float = 0.0
    residual: bool = True
    update_edges: bool = True
    equivstable_pe: bool = False
    pna_degrees: Sequence[int] = ()


Arguments = Callable[[Tensor, Tensor, Tensor | None, Layout], tuple[Any, ...]]


class Convolution(nn.Module):
    """A convolution of PyG's as a local model.

    Args:
        conv: the convolution.
        arguments: its arguments after the nodes, computed from (x, edge_index, edge_attr, layout).
    """

    def __init__(self, conv: nn.Module, arguments: Arguments) -> None:
        super().__init__()
        self.conv = conv
        self.arguments = arguments

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
    ) -> tuple[Tensor, Tensor | None]:
        """Nodes [N, F] to their update [N, F]; the edge features pass through."""
        return self.conv(x, *self.arguments(x, edge_index, edge_attr, layout)), edge_attr


def as_local(module: nn.Module) -> nn.Module:
    """A convolution of PyG's as a local model; any other module as it is."""
    if not isinstance(module, MessagePassing):
        return module
    takes_features = "edge_attr" in inspect.signature(module.forward).parameters
    return Convolution(module, _with_features if takes_features else _edges_only)


class GINE(nn.Module):
    """GINE: ``x_i' = MLP(x_i + Σ_j relu(x_j + L e_ij))``.

    What PyG's GINEConv computes, without the machinery of message passing; its state is the same.

    Args:
        mlp: [N, F] to [N, F].
        lift: L, a map of edge features to the width of the nodes; None where they have it.
    """

    def __init__(self, mlp: nn.Module, lift: nn.Module | None = None) -> None:
        super().__init__()
        self.nn, self.lin = mlp, lift
        self.register_buffer("eps", torch.zeros(1))  # GINEConv's, which is fixed at 0
        reset(self.nn)  # GINEConv does it: the same seed gives the same weights
        reset(self.lin)
        self.register_load_state_dict_pre_hook(_refuse_eps)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Nodes [N, F] and edges [E, D] to nodes [N, F]."""
        source, target = edge_index
        edges = edge_attr if self.lin is None else self.lin(edge_attr)
        if kernels_enabled() and compiled_layer.serves_messages(x, edges, source):
            return self.nn(compiled_layer.messages(x, edges, source, target))
        messages = (x.index_select(0, source) + edges).relu()
        return self.nn(x + wide_sum(messages, target, x.size(0)).to(messages.dtype))


def _refuse_eps(module: nn.Module, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """A GINEConv with another ε, such as a trained one, is another function."""
    eps = state.get(f"{prefix}eps")
    if eps is not None and bool(eps.any()):
        raise ValueError(f"{prefix}eps: GINE has ε = 0, and these weights come with {float(eps):.3g}")


class DistanceGINE(nn.Module):
    """GINE, messages weighed by distance: ``x_i' = MLP(x_i + Σ_j g(|p_i - p_j|²) relu(x_j + L e_ij))``.

    Args:
        mlp: [N, F] to [N, F].
        gate: g.
        lift: L, a map of edge features to the width of the nodes.
    """

    # Not derived from PyG's GINEConv: a subclass with another message inherits the propagate() that PyG
    # generates for the parent, and fails after the first use of the parent.

    def __init__(self, mlp: nn.Module, gate: DistanceGate, lift: nn.Module) -> None:
        super().__init__()
        self.mlp, self.gate, self.lift = mlp, gate, lift

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, distance: Tensor | None) -> Tensor:
        """Nodes [N, F], edges [E, D] and squared distances [E, 1] to nodes [N, F]."""
        source, target = edge_index
        messages = (x[source] + self.lift(edge_attr)).relu() * self.gate(distance)
        return self.mlp(x + wide_sum(messages, target, x.size(0)).to(messages.dtype))


def _edges_only(x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout) -> tuple[Any, ...]:
    return (edge_index,)


def _with_features(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
) -> tuple[Any, ...]:
    return edge_index, edge_attr


def _with_distances(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
) -> tuple[Any, ...]:
    return edge_index, edge_attr, layout.distance


def _gcn_arguments(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
) -> tuple[Any, ...]:
    """Edges with self-loops and their D^-1/2 (A + I) D^-1/2 weights: the same for every layer."""

    def with_loops() -> tuple[Any, ...]:
        degrees_in = torch.promote_types(x.dtype, torch.float32)  # as in layout.wide
        edges, weights = gcn_norm(edge_index, None, x.size(0), dtype=degrees_in)
        return edges, weights.to(x.dtype)

    return layout.cached(f"gcn in {x.dtype}", edge_index, with_loops)


def _gat_arguments(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
) -> tuple[Any, ...]:
    """Edges with self-loops, whose features are the mean of those that come in, as PyG's GAT makes them."""

    def with_loops() -> tuple[Any, ...]:
        edges, features = remove_self_loops(edge_index, edge_attr)
        return add_self_loops(edges, features, fill_value="mean", num_nodes=x.size(0))

    return layout.cached("gat", edge_index if edge_attr is None else edge_attr, with_loops)


def _gat_arguments_plain(
    x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, layout: Layout
) -> tuple[Any, ...]:
    return (_gat_arguments(x, edge_index, None, layout)[0],)


def _mlp(s: LocalSettings) -> nn.Sequential:
    return nn.Sequential(Linear(s.dim, s.dim), activation(s.act), Linear(s.dim, s.dim))


def _gcn(s: LocalSettings) -> nn.Module:
    return Convolution(pyg_nn.GCNConv(s.dim, s.dim, normalize=False), _gcn_arguments)


def _gin(s: LocalSettings) -> nn.Module:
    return Convolution(pyg_nn.GINConv(_mlp(s)), _edges_only)


def _gine(s: LocalSettings) -> nn.Module:
    edge_dim = _needs_edges(s, "GINE")
    if s.equivstable_pe:
        lift = nn.Identity() if edge_dim == s.dim else nn.Linear(edge_dim, s.dim)
        return Convolution(DistanceGINE(_mlp(s), DistanceGate(s.dim), lift), _with_distances)
    conv = GINE(_mlp(s), None if edge_dim == s.dim else pyg_nn.Linear(edge_dim, s.dim))
    return Convolution(conv, _with_features)


def _gat(s: LocalSettings) -> nn.Module:
    check_heads(s.dim, s.heads)
    conv = pyg_nn.GATConv(s.dim, s.dim // s.heads, heads=s.heads, edge_dim=s.edge_dim, add_self_loops=False)
    return Convolution(conv, _gat_arguments_plain if s.edge_dim is None else _gat_arguments)


def _gen(s: LocalSettings) -> nn.Module:
    conv = pyg_nn.GENConv(s.dim, s.dim, edge_dim=s.edge_dim)
    for number, module in enumerate(conv.mlp):
        if isinstance(module, nn.BatchNorm1d):  # one row has no variance, here as everywhere else
            conv.mlp[number] = pyg_nn.BatchNorm(module.num_features, allow_single_element=True)
    return Convolution(conv, _edges_only if s.edge_dim is None else _with_features)


def _pna(s: LocalSettings) -> nn.Module:
    # GraphGPS's choice of aggregators and scalers. Towers and layers are PyG's defaults (one of each).
    conv = pyg_nn.PNAConv(
        s.dim,
        s.dim,
        aggregators=["mean", "max", "sum"],
        scalers=["identity"],
        deg=degree_histogram(s.pna_degrees or (0, 1)),
        edge_dim=s.edge_dim,
    )
    return Convolution(conv, _edges_only if s.edge_dim is None else _with_features)


def _gated_gcn(s: LocalSettings) -> nn.Module:
    if _needs_edges(s, "CustomGatedGCN") != s.dim:
        raise ConfigError(f"CustomGatedGCN needs edges as wide as nodes: {s.edge_dim} is not {s.dim}")
    return GatedGCN(s.dim, s.act, s.dropout, s.residual, s.update_edges, s.equivstable_pe)


LOCAL_MODELS: dict[str, Callable[[LocalSettings], nn.Module] | None] = {
    "None": None,
    "GCN": _gcn,
    "GIN": _gin,
    "GINE": _gine,
    "GAT": _gat,
    "GENConv": _gen,
    "PNA": _pna,
    "CustomGatedGCN": _gated_gcn,
}


def build_local(name: str, settings: LocalSettings, key: str = "gt.layer_type") -> nn.Module | None:
    """The local model of that name (None for "None"); ``key`` is the config key to blame where that fails."""
    make = pick(LOCAL_MODELS, name, key)
    return None if make is None else make(settings)


def reads_edges(name: str) -> bool:
    """Whether the local model of that name makes use of edge features."""
    return name not in READ_NO_EDGES


def degree_histogram(degrees: Sequence[int] | Tensor) -> Tensor:
    """[max degree + 1] how many nodes have in-degree 0, 1, ...; at least one node."""
    histogram = torch.as_tensor(
        degrees, dtype=torch.long, device="cpu"
    ).flatten()  # also in a network on meta
    if histogram.numel() == 0 or int(histogram.min()) < 0 or int(histogram.sum()) == 0:
        raise ConfigError(
            f"gt.pna_degrees: {histogram.tolist()} does not count nodes of in-degree 0, 1, 2, ..."
        )
    return histogram


def _needs_edges(s: LocalSettings, name: str) -> int:
    if s.edge_dim is None:
        raise ConfigError(
            f"dataset.edge_encoder: {name} reads edge features, and there are none: set it to True, with "
            "dataset.edge_encoder_name DummyEdge for graphs whose edges carry nothing"
        )
    return s.edge_dim
