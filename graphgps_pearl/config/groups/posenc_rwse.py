"""RWSE: return probabilities of a random walk."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import kernel, network, placed

KEYS = {**placed(), **network(("Linear", "MLP")), **kernel()}
