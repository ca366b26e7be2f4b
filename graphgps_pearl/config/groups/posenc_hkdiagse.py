"""Upstream's heat-kernel encoding, which is not among the encodings here."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import kernel, network, placed

KEYS = {**placed(used=False), **network(("Linear", "MLP"), used=False), **kernel(used=False)}
