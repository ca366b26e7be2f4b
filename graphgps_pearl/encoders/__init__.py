"""Node and edge encoders for GraphGym: PEARL, the encodings it is compared with, and encoders of the data
itself.

One file per encoder: a pure module and the thin class that reads its config group. ``compose`` resolves
names such as ``Atom+BPEARL+RWSE``; ``FeatureEncoder`` is what networks use.
"""

from __future__ import annotations

from graphgps_pearl.encoders.base import PosEncEncoder
from graphgps_pearl.encoders.compose import ComposedNodeEncoder
from graphgps_pearl.encoders.feature import FeatureEncoder, check_features, injected_dim, required_transforms
from graphgps_pearl.encoders.table import DATA_ENCODERS, EDGE_ENCODERS, NODE_ENCODERS, POSITIONAL_ENCODERS

__all__ = [
    "DATA_ENCODERS",
    "EDGE_ENCODERS",
    "NODE_ENCODERS",
    "POSITIONAL_ENCODERS",
    "ComposedNodeEncoder",
    "FeatureEncoder",
    "PosEncEncoder",
    "check_features",
    "injected_dim",
    "required_transforms",
]
