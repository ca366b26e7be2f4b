"""B-PEARL: Φ on the standard basis, summed over it."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import phi, placed

KEYS = {**placed(), **phi(pool="sum")}
