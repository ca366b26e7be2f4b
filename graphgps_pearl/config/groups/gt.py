"""The GPS layers: local message passing beside global attention."""

from __future__ import annotations

from graphgps_pearl.config.key import Key
from graphgps_pearl.vocabulary import ATTENTION_GATES

LOCAL = ("None", "GCN", "GIN", "GINE", "GAT", "GENConv", "PNA", "CustomGatedGCN")
GLOBAL = ("None", "Transformer", "Performer")

KEYS = {
    "layer_type": Key(
        "SANLayer", f"LOCAL+GLOBAL for GPSModel: local {', '.join(LOCAL)}; global {', '.join(GLOBAL)}."
    ),
    "layers": Key(3, "Number of GPS layers.", min=1),
    "n_heads": Key(8, "Attention heads; they divide dim_hidden.", min=1),
    "dim_hidden": Key(64, "Width of the layers; equal to gnn.dim_inner.", min=1),
    "dropout": Key(0.0, "Dropout after local model, attention and feed-forward.", min=0, below=1),
    "attn_dropout": Key(0.0, "Dropout of the attention weights.", min=0, below=1),
    "attn_gate": Key(
        "none",
        "Gate on the attention's heads, sigmoid of a projection of the input: one per head, or per channel.",
        choices=ATTENTION_GATES,
    ),
    "degree_scaler": Key(False, "Scale what attention gives by log(1 + degree), as GRIT does."),
    "batch_norm": Key(True, "Batch norm in every layer."),
    "layer_norm": Key(False, "Graph-wise layer norm in every layer, instead of batch norm."),
    "pna_degrees": Key(
        [],
        "Histogram of the training nodes' degrees for PNA; empty = counted from the data.",
        type=list[int],
        min=0,
    ),
    "residual": Key(
        True, "Residual connections of upstream's SAN layers; GPS layers always have them.", used=False
    ),
    "full_graph": Key(True, "SAN: attend to all pairs.", used=False),
    "gamma": Key(1e-5, "SAN: weight of real against other edges.", used=False),
    "bigbird.attention_type": Key("block_sparse", "BigBird: kind of attention.", used=False),
    "bigbird.chunk_size_feed_forward": Key(0, "BigBird: chunks of the feed-forward.", min=0, used=False),
    "bigbird.is_decoder": Key(False, "BigBird: decoder.", used=False),
    "bigbird.add_cross_attention": Key(False, "BigBird: cross-attention.", used=False),
    "bigbird.hidden_act": Key("relu", "BigBird: activation.", used=False),
    "bigbird.max_position_embeddings": Key(128, "BigBird: positions.", min=0, used=False),
    "bigbird.use_bias": Key(False, "BigBird: bias.", used=False),
    "bigbird.num_random_blocks": Key(3, "BigBird: random blocks.", min=0, used=False),
    "bigbird.block_size": Key(3, "BigBird: block size.", min=0, used=False),
    "bigbird.layer_norm_eps": Key(1e-6, "BigBird: layer norm's epsilon.", min=0, used=False),
}
