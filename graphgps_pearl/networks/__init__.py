"""Networks: the GPS graph transformer and message passing alone, their heads, and how a config becomes one.

:class:`GPS` takes modules. ``build(cfg, dim_in, dim_out)`` reads a config; it and what belongs to it load
GraphGym at the first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphgps_pearl.networks.gps import GPS
from graphgps_pearl.networks.heads import EdgeHead, GraphHead, NodeHead, graph_mlp, plain_mlp, san_mlp
from graphgps_pearl.networks.network import GraphNetwork, PreLayer, compile_layers, preparation
from graphgps_pearl.networks.parameters import PARTS, count_parameters, needs_degrees, set_degrees
from graphgps_pearl.networks.pooling import POOLINGS, Pool

if TYPE_CHECKING:
    from graphgps_pearl.networks.from_config import HEADS, NETWORKS, build, build_head, offer_parts

_FROM_CONFIG = ("HEADS", "NETWORKS", "build", "build_head", "offer_parts")

__all__ = [
    "GPS",
    "HEADS",
    "NETWORKS",
    "PARTS",
    "POOLINGS",
    "EdgeHead",
    "GraphHead",
    "GraphNetwork",
    "NodeHead",
    "Pool",
    "PreLayer",
    "build",
    "build_head",
    "compile_layers",
    "count_parameters",
    "graph_mlp",
    "needs_degrees",
    "offer_parts",
    "plain_mlp",
    "preparation",
    "san_mlp",
    "set_degrees",
]


def __getattr__(name: str) -> Any:
    """What reads a config, loaded when it is needed."""
    if name in _FROM_CONFIG:
        return getattr(import_module(f"{__name__}.from_config"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
