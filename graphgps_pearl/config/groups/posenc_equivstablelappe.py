"""EquivStableLapPE (PEG): distances between eigenvector rows weigh the edges of local message passing."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import eigen, switch
from graphgps_pearl.config.key import Key

KEYS = {
    **switch(),
    "raw_norm_type": Key("none", "Normalisation of the eigenvectors.", choices=("none", "BatchNorm")),
    **eigen(),
}
