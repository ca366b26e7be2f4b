"""RandomID: random identifiers of the nodes."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import placed
from graphgps_pearl.config.key import Key

KEYS = {
    **placed(),
    "law": Key("gaussian", "Law of the identifiers.", choices=("gaussian", "rademacher", "two_point")),
    "eval_seed": Key(0, "Seed of the table of identifiers used in evaluation.", min=0, max=2**31 - 1),
}
