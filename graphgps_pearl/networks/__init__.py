"""Networks: the GPS graph transformer and message passing alone, their heads, and how a config becomes one.

``build(cfg, dim_in, dim_out)`` is the only function here that reads a config.
"""

from graphgps_pearl.networks.build import HEADS, MESSAGE_PASSING, NETWORKS, build, build_head
from graphgps_pearl.networks.heads import GraphHead
from graphgps_pearl.networks.network import GraphNetwork, PreLayer
from graphgps_pearl.networks.parameters import PARTS, count_parameters, needs_degrees, set_degrees
from graphgps_pearl.networks.pooling import POOLINGS, Pool

__all__ = [
    "HEADS",
    "MESSAGE_PASSING",
    "NETWORKS",
    "PARTS",
    "POOLINGS",
    "GraphHead",
    "GraphNetwork",
    "Pool",
    "PreLayer",
    "build",
    "build_head",
    "count_parameters",
    "needs_degrees",
    "set_degrees",
]
