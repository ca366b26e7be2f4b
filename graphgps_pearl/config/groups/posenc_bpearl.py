"""B-PEARL: Φ on the standard basis, summed over it."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import phi, placed
from graphgps_pearl.config.key import Key

KEYS = {
    **placed(),
    **phi(pool="sum"),
    "plan": Key(
        "batch",
        "When to find which rows are equal: in every batch, or once for each graph, cached with the data.",
        choices=("batch", "cached"),
    ),
}
