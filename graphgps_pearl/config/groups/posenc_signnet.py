"""SignNet: eigenvectors of the Laplacian, invariant to their signs."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import eigen, network, placed
from graphgps_pearl.config.key import Key

KEYS = {
    **placed(),
    **network(("DeepSet", "MLP")),
    **eigen(fewest=0),
    "phi_out_dim": Key(4, "Width of φ's output.", min=1),
    "phi_hidden_dim": Key(64, "Width inside φ.", min=1),
}
