"""Widths and activation of every network, the head, and the layers of custom_gnn."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "head": Key(
        "default", "Head: default (by dataset.task), graph, san_graph, mlp_graph, or a registered one."
    ),
    "dim_inner": Key(16, "Width of the encoded features and of the network.", min=1),
    "layers_pre_mp": Key(0, "Linear layers between encoders and message passing.", min=0),
    "layers_mp": Key(2, "Message-passing layers of custom_gnn.", min=1),
    "layers_post_mp": Key(0, "Layers of the head; less than 1 means 1.", min=0),
    "layer_type": Key(
        "generalconv", "Layer of custom_gnn: gineconv, gatedgcnconv, pna, or a registered one."
    ),
    "residual": Key(False, "Residual connections in custom_gnn."),
    "batchnorm": Key(True, "Batch norm in the linear layers before message passing and in the head."),
    "act": Key("relu", "Activation: relu, gelu, elu, selu, prelu, or a registered one."),
    "dropout": Key(0.0, "Dropout of custom_gnn's layers and of the linear layers.", min=0, below=1),
    "agg": Key("add", "Aggregation of GraphGym's generalconv.", used=False),
    "stage_type": Key("stack", "How custom_gnn stacks its layers: stack, or skipsum = residual."),
    "skip_every": Key(1, "Layers between GraphGym's skips.", min=1, used=False),
    "normalize_adj": Key(False, "Normalise the adjacency in GraphGym's layers.", used=False),
    "msg_direction": Key("single", "Direction of messages.", choices=("single", "both"), used=False),
    "self_msg": Key("concat", "Message of a node to itself.", used=False),
    "att_heads": Key(1, "Heads of GraphGym's attention layers.", min=1, used=False),
    "att_final_linear": Key(False, "Linear layer after GraphGym's attention.", used=False),
    "att_final_linear_bn": Key(False, "Batch norm after GraphGym's attention.", used=False),
    "l2norm": Key(True, "Rows of unit length after each layer before message passing."),
    "keep_edge": Key(0.5, "Part of the edges GraphGym keeps.", min=0, max=1, used=False),
    "clear_feature": Key(True, "Clear GraphGym's cached features.", used=False),
}
