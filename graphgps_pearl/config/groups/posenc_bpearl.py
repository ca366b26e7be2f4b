"""B-PEARL: Φ on the standard basis, summed over it."""

from __future__ import annotations

from graphgps_pearl.config.groups.posenc_parts import PAIR_POOLS, phi, placed
from graphgps_pearl.config.key import Key

KEYS = {
    **placed(),
    **phi(pool="sum", pools=PAIR_POOLS),
    "tap_diagonal": Key(
        False,
        "Put the taps' own diagonal (with random_walk: RWSE) beside the statistics; needs num_taps >= 2.",
    ),
    "pair_bias": Key(
        "none",
        "Add a projection of Φ(G, e_m)[v] and Φ(G, e_v)[m] to the attention logits of query v and key m: "
        "the same in all layers, or one for each.",
        choices=("none", "shared", "per_layer"),
    ),
    "pair_edges": Key(False, "Add a projection of Φ(G, e_u)[v] to the features of edge (u, v)."),
    "plan": Key(
        "batch",
        "When to find which rows are equal: in every batch, or once for each graph, cached with the data.",
        choices=("batch", "cached"),
    ),
}
