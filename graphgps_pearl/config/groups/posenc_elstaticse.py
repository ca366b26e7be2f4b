"""Upstream's electrostatic encoding, which is not among the encodings here."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import kernel, network, placed
from graphgps_pearl.config.key import Key

KEYS = {
    **placed(used=False),
    **network(("Linear", "MLP"), used=False),
    **kernel(used=False),
    # Upstream's kernel has ten measures, no more and no fewer.
    "kernel.times_func": Key("range(10)", "The ten measures.", choices=("range(10)",), used=False),
}
