"""Upstream's Graphormer, which is not among the networks here."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "num_layers": Key(6, "Layers.", min=1, used=False),
    "embed_dim": Key(80, "Width.", min=1, used=False),
    "num_heads": Key(4, "Heads.", min=1, used=False),
    "dropout": Key(0.0, "Dropout.", min=0, max=1, used=False),
    "attention_dropout": Key(0.0, "Dropout of the attention.", min=0, max=1, used=False),
    "mlp_dropout": Key(0.0, "Dropout of the feed-forward.", min=0, max=1, used=False),
    "input_dropout": Key(0.0, "Dropout of the input.", min=0, max=1, used=False),
    "use_graph_token": Key(True, "A node that stands for the graph.", used=False),
}
