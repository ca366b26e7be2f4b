"""SPE: eigenvalues and eigenvectors, stable and invariant to the choice of basis: ρ(V diag(φ(λ)) Vᵀ)."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import eigen, placed
from graphgps_pearl.config.key import Key

KEYS = {
    **placed(),
    **eigen(fewest=0),
    "model": Key("MLP", "How φ acts: on each eigenvalue, or with a view of all.", choices=("MLP", "DeepSet")),
    "layers": Key(3, "Layers of φ, which acts on the eigenvalues.", min=2),
    "phi_hidden_dim": Key(16, "Width inside φ.", min=1),
    "phi_out_dim": Key(16, "Number of filters, which is φ's output width.", min=1),
    "post_layers": Key(3, "GIN layers of ρ.", min=1),
    "post_hidden_dim": Key(40, "Width inside ρ.", min=1),
}
