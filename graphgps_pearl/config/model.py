"""Keys of the network: GPS layers, widths, heads, pooling, loss."""

from __future__ import annotations

from graphgps_pearl.config.key import Groups, Key
from graphgps_pearl.vocabulary import (
    ATTENTION_GATES,
    BIASED,
    EDGE_DECODINGS,
    EDGE_HEADS,
    GLOBAL_LAYERS,
    GRAPH_HEADS,
    GRAPH_POOLINGS,
    LOCAL_LAYERS,
    MESSAGE_PASSING,
    NETWORKS,
    NODE_HEADS,
)

_MODEL = {
    "type": Key("gnn", f"Network: {', '.join(NETWORKS)}, or one registered with GraphGym, such as gnn."),
    "loss_fun": Key(
        "cross_entropy",
        "Loss: l1, mse, smoothl1, cross_entropy, weighted_cross_entropy, or a registered one; left out, mse "
        "for regression.",
    ),
    "edge_decoding": Key(
        "dot", "Edge tasks: how the vectors of two nodes become a logit.", choices=EDGE_DECODINGS
    ),
    "graph_pooling": Key(
        "add",
        f"How nodes are pooled into a graph: {', '.join(GRAPH_POOLINGS)}, or a registered name; several "
        "joined by + are concatenated.",
    ),
}

_GT = {
    "layer_type": Key(
        "SANLayer",
        f"LOCAL+GLOBAL for GPSModel: local {', '.join(LOCAL_LAYERS)}; global {', '.join(GLOBAL_LAYERS)}, "
        f"{BIASED} (with GraphormerBias).",
    ),
    "layers": Key(3, "Number of GPS layers.", min=1),
    "n_heads": Key(8, "Attention heads; they divide dim_hidden.", min=1),
    "dim_hidden": Key(64, "Width of the layers; equal to gnn.dim_inner.", min=1),
    "dropout": Key(0.0, "Dropout after local model, attention and feed-forward.", min=0, below=1),
    "attn_dropout": Key(0.0, "Dropout of GPSModel's attention weights.", min=0, below=1),
    "attn_gate": Key(
        "none",
        "Gate on the attention's heads, sigmoid of a projection of the input: one per head, or per channel.",
        choices=ATTENTION_GATES,
    ),
    "degree_scaler": Key(False, "Scale what attention gives by log(1 + degree), as GRIT does."),
    "edge_update": Key(False, "Edge features updated by every layer, from the nodes at both ends."),
    "batch_norm": Key(True, "Batch norm in every layer."),
    "layer_norm": Key(
        False,
        "Layer norm in every layer, of each graph (SANTransformer: of each node), instead of batch norm.",
    ),
    "full_graph": Key(True, "SANTransformer: attention also between nodes without an edge."),
    "gamma": Key(1e-5, "SANTransformer: weight of that attention.", min=0),
    "pna_degrees": Key(
        [],
        "Histogram of the training nodes' degrees for PNA; empty = counted from the data.",
        type=list[int],
        min=0,
    ),
}

_GNN = {
    "head": Key(
        "default",
        f"Head: default (by dataset.task), {', '.join((*GRAPH_HEADS, *NODE_HEADS, *EDGE_HEADS))}, or a "
        "registered one.",
    ),
    "dim_inner": Key(16, "Width of the encoded features and of the network.", min=1),
    "layers_pre_mp": Key(0, "Linear layers between encoders and message passing.", min=0),
    "layers_mp": Key(2, "Message-passing layers of custom_gnn.", min=1),
    "layers_post_mp": Key(
        0, "Layers of the heads graph, node, edge and mlp_graph; less than 1 means 1.", min=0
    ),
    "layer_type": Key(
        "generalconv",
        f"Layer of custom_gnn: {', '.join(MESSAGE_PASSING)}, or a registered one; of gnn also "
        "GraphGym's own.",
    ),
    "residual": Key(False, "Residual connections in custom_gnn."),
    "batchnorm": Key(True, "Batch norm in the linear layers before message passing."),
    "act": Key(
        "relu",
        "Activation: relu, gelu, elu, selu, prelu, swish, lrelu_01 (025, 03, 05), or a registered one.",
    ),
    "dropout": Key(
        0.0,
        "Dropout of custom_gnn's layers, of the layers before message passing and of the head mlp_graph.",
        min=0,
        below=1,
    ),
    "stage_type": Key("stack", "How custom_gnn stacks its layers: stack, or skipsum = residual."),
    "l2norm": Key(True, "Rows of unit length after each layer before message passing."),
}

_BN = {
    "eps": Key(1e-5, "Added to the variance.", above=0),
    "mom": Key(0.1, "Weight of the newest batch in the running statistics.", min=0, max=1),
}

_GRAPHORMER = {
    "num_layers": Key(6, "Layers.", min=1),
    "embed_dim": Key(80, "Width; equal to gnn.dim_inner.", min=1),
    "num_heads": Key(4, "Attention heads, also of the bias of GraphormerBias in GPSModel.", min=1),
    "dropout": Key(0.0, "Dropout after attention and feed-forward.", min=0, below=1),
    "attention_dropout": Key(0.0, "Dropout of the attention weights.", min=0, below=1),
    "mlp_dropout": Key(0.0, "Dropout inside the feed-forward block.", min=0, below=1),
    "input_dropout": Key(0.0, "Dropout after GraphormerBias.", min=0, below=1),
    "use_graph_token": Key(
        True, "GraphormerBias puts a node in front of every graph, for graph_pooling: graph_token."
    ),
}

GROUPS: Groups = {
    "model": ("Which network, loss and pooling.", _MODEL),
    "gt": ("The GPS layers: local message passing and global attention.", _GT),
    "graphormer": ("The layers of Graphormer, and the graph token.", _GRAPHORMER),
    "gnn": ("Widths and activation of every network, the head, and the layers of custom_gnn.", _GNN),
    "bn": (
        "Batch norms after the encoders (node_encoder_bn, edge_encoder_bn) and before message passing; those "
        "in layers and encodings have torch's defaults.",
        _BN,
    ),
}
