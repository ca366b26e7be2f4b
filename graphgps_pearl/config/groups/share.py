"""What GraphGym's modules share at run time; filled in when the data is known, whatever a file says."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "dim_in": Key(1, "Columns of the node features.", min=0, used=False),
    "dim_out": Key(1, "Number of outputs.", min=0, used=False),
    "num_splits": Key(1, "Number of splits.", min=0, used=False),
}
