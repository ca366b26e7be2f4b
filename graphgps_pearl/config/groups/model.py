"""Which network, loss and pooling."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "type": Key("gnn", "Network: GPSModel, custom_gnn, or one registered with GraphGym."),
    "loss_fun": Key(
        "cross_entropy", "Loss: l1, mse, cross_entropy, or a registered one; left out, mse for regression."
    ),
    "graph_pooling": Key("add", "How nodes are pooled into a graph: add, mean, max, or a registered name."),
    "size_average": Key("mean", "Whether losses are averaged.", choices=("mean", "sum"), used=False),
    "thresh": Key(0.5, "Threshold of binary classification; always 0.5 here.", min=0, max=1, used=False),
    "match_upper": Key(True, "Match GraphGym's computational budget.", used=False),
    "edge_decoding": Key(
        "dot", "Edge tasks: how a pair is scored.", choices=("dot", "cosine_similarity", "concat"), used=False
    ),
}
