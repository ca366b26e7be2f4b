"""GraphGym's sampling for validation; evaluation here sees every graph whole."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "sample_node": Key(False, "Sample nodes for a batch.", used=False),
    "sampler": Key("full_batch", "How batches are drawn.", used=False),
    "node_per_graph": Key(32, "Nodes sampled per graph.", min=1, used=False),
    "radius": Key("extend", "Radius of the sampled neighbourhood.", choices=("same", "extend"), used=False),
}
