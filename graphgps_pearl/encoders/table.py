"""Our encoders by the names that configs use. ``Atom`` and ``Bond`` are PyG's own."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn
from torch_geometric.graphgym.models.encoder import AtomEncoder, BondEncoder

from graphgps_pearl.encoders.base import PosEncEncoder
from graphgps_pearl.encoders.basisnet import BasisNetNodeEncoder
from graphgps_pearl.encoders.dummy_edge import DummyEdgeEncoder
from graphgps_pearl.encoders.equivstable import EquivStableLapPENodeEncoder
from graphgps_pearl.encoders.graphormer import GraphormerBiasEncoder
from graphgps_pearl.encoders.gsn import GSNNodeEncoder
from graphgps_pearl.encoders.lappe import LapPENodeEncoder
from graphgps_pearl.encoders.linear import (
    LinearEdgeEncoder,
    LinearNodeEncoder,
    PPAEdgeEncoder,
    VOCEdgeEncoder,
)
from graphgps_pearl.encoders.pearl import BPEARLNodeEncoder, RPEARLNodeEncoder
from graphgps_pearl.encoders.random_id import RandomIDNodeEncoder
from graphgps_pearl.encoders.rwse import RWSENodeEncoder
from graphgps_pearl.encoders.signnet import SignNetNodeEncoder
from graphgps_pearl.encoders.spe import SPENodeEncoder
from graphgps_pearl.encoders.type_dict import (
    ASTEdgeEncoder,
    ASTNodeEncoder,
    PPANodeEncoder,
    TypeDictEdgeEncoder,
    TypeDictNodeEncoder,
)
from graphgps_pearl.ogb_features import ogb_features

ogb_features()  # before PyG's AtomEncoder imports it, which would ask the network

DATA_ENCODERS: dict[str, Callable[..., nn.Module]] = {
    "Atom": AtomEncoder,
    "TypeDictNode": TypeDictNodeEncoder,
    "LinearNode": LinearNodeEncoder,
    "VOCNode": LinearNodeEncoder,
    "PPANode": PPANodeEncoder,
    "ASTNode": ASTNodeEncoder,
}
POSITIONAL_ENCODERS: dict[str, type[PosEncEncoder]] = {
    encoder.name: encoder
    for encoder in (
        RPEARLNodeEncoder,
        BPEARLNodeEncoder,
        RWSENodeEncoder,
        LapPENodeEncoder,
        SignNetNodeEncoder,
        SPENodeEncoder,
        BasisNetNodeEncoder,
        EquivStableLapPENodeEncoder,
        GSNNodeEncoder,
        RandomIDNodeEncoder,
    )
}
#: It adds to columns instead of taking some, so it is no :class:`PosEncEncoder`.
NODE_ENCODERS: dict[str, Callable[..., nn.Module]] = {
    **DATA_ENCODERS,
    **POSITIONAL_ENCODERS,
    "GraphormerBias": GraphormerBiasEncoder,
}
EDGE_ENCODERS: dict[str, Callable[..., nn.Module]] = {
    "Bond": BondEncoder,
    "TypeDictEdge": TypeDictEdgeEncoder,
    "LinearEdge": LinearEdgeEncoder,
    "VOCEdge": VOCEdgeEncoder,
    "PPAEdge": PPAEdgeEncoder,
    "ASTEdge": ASTEdgeEncoder,
    "DummyEdge": DummyEdgeEncoder,
}
