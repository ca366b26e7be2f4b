"""Upstream's Graphormer bias, which is not among the encodings here."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import switch
from graphgps_pearl.config.key import Key

KEYS = {
    **switch(used=False),
    "node_degrees_only": Key(False, "Degrees only.", used=False),
    "dim_pe": Key(0, "Columns of the encoding.", min=0, used=False),
    "num_spatial_types": Key(None, "Number of distances.", type=int, min=0, optional=True, used=False),
    "num_in_degrees": Key(None, "Number of in-degrees.", type=int, min=0, optional=True, used=False),
    "num_out_degrees": Key(None, "Number of out-degrees.", type=int, min=0, optional=True, used=False),
}
