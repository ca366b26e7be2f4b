"""The layers of GPS networks: local message passing, global attention, and both in parallel.

Tensors in, tensors out, plain constructor arguments. Nodes of a batch come packed, [N, F]; a
:class:`~graphgps_pearl.layers.layout.Layout`, made once per batch, says which graph each belongs to.
"""

from graphgps_pearl.layers.attention import Gate, LinearAttention, MultiheadAttention
from graphgps_pearl.layers.dropout import Dropout
from graphgps_pearl.layers.gated_gcn import DistanceGate, GatedGCN
from graphgps_pearl.layers.gps_layer import (
    GLOBAL_MODELS,
    DegreeScaler,
    EdgeUpdate,
    GPSLayer,
    MessagePassingLayer,
    Norm,
    build_gps_layer,
)
from graphgps_pearl.layers.graphormer import GraphormerLayer, PathBias
from graphgps_pearl.layers.layout import Layout, squared_distance
from graphgps_pearl.layers.local import (
    LOCAL_MODELS,
    Convolution,
    DistanceGINE,
    LocalSettings,
    build_local,
    degree_histogram,
    reads_edges,
)
from graphgps_pearl.layers.names import ACTIVATIONS, Activation, activation, pick, unknown
from graphgps_pearl.layers.pair_bias import PairBiasProjection, pair_index
from graphgps_pearl.layers.pair_stream import PairStream
from graphgps_pearl.layers.san import SANLayer

__all__ = [
    "ACTIVATIONS",
    "GLOBAL_MODELS",
    "LOCAL_MODELS",
    "Activation",
    "Convolution",
    "DegreeScaler",
    "DistanceGINE",
    "DistanceGate",
    "Dropout",
    "EdgeUpdate",
    "GPSLayer",
    "Gate",
    "GatedGCN",
    "GraphormerLayer",
    "Layout",
    "LinearAttention",
    "LocalSettings",
    "MessagePassingLayer",
    "MultiheadAttention",
    "Norm",
    "PairBiasProjection",
    "PairStream",
    "PathBias",
    "SANLayer",
    "activation",
    "build_gps_layer",
    "build_local",
    "degree_histogram",
    "pair_index",
    "pick",
    "reads_edges",
    "squared_distance",
    "unknown",
]
