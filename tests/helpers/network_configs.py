"""Configs and graphs for tests of networks: the settings of two published GPS runs, and small molecules."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch_geometric.data import Batch, Data
from yacs.config import CfgNode

from graphgps_pearl import config, encoders

ZINC = """
dataset:
  {format: PyG-ZINC, name: subset, task: graph, task_type: regression, node_encoder: true,
   node_encoder_name: TypeDictNode+RWSE, node_encoder_num_types: 28, node_encoder_bn: false,
   edge_encoder: true, edge_encoder_name: TypeDictEdge, edge_encoder_num_types: 4, edge_encoder_bn: false}
posenc_RWSE: {kernel: {times_func: "range(1,21)"}, model: Linear, dim_pe: 28, raw_norm_type: BatchNorm}
model: {type: GPSModel, loss_fun: l1, graph_pooling: add}
gt: {layer_type: GINE+Transformer, layers: 10, n_heads: 4, dim_hidden: 64, attn_dropout: 0.5}
gnn: {head: san_graph, layers_post_mp: 3, dim_inner: 64}
"""

PEPTIDES = """
dataset:
  {format: OGB, name: peptides-structural, task: graph, task_type: regression, node_encoder: true,
   node_encoder_name: Atom+LapPE, node_encoder_bn: false, edge_encoder: true, edge_encoder_name: Bond,
   edge_encoder_bn: false}
posenc_LapPE:
  {eigen: {laplacian_norm: none, eigvec_norm: L2, max_freqs: 10}, model: DeepSet, dim_pe: 16, layers: 2}
model: {type: GPSModel, loss_fun: l1, graph_pooling: mean}
gt: {layer_type: CustomGatedGCN+Transformer, layers: 4, n_heads: 4, dim_hidden: 96, attn_dropout: 0.5}
gnn: {head: default, layers_post_mp: 1, dim_inner: 96}
"""

# ZINC's, small.
SMALL = ("gt.layers", 2, "gt.dim_hidden", 16, "gnn.dim_inner", 16, "posenc_RWSE.dim_pe", 4)


def make(text: str, *overrides: object) -> CfgNode:
    """The config of a text with KEY VALUE words over it."""
    return config.parse(text, overrides)


def molecules(
    cfg: CfgNode, sizes: Sequence[int] = (6, 1, 9, 3), num_targets: int = 1, seed: int = 0
) -> list[Data]:
    """Random graphs with ZINC's integer features, and whatever the config's encodings want precomputed."""
    generator = torch.Generator().manual_seed(seed)
    transforms = encoders.required_transforms(cfg)
    graphs = []
    for size in sizes:
        chain = torch.arange(size - 1)
        edges = torch.stack([chain, chain + 1])
        if size > 4:
            edges = torch.cat([edges, torch.tensor([[0], [size - 2]])], dim=1)
        edges = torch.cat([edges, edges.flip(0)], dim=1)
        graph = Data(
            x=torch.randint(28, (size, 1), generator=generator),
            edge_index=edges,
            edge_attr=torch.randint(1, 4, (edges.size(1),), generator=generator),
            y=torch.randn(1, num_targets, generator=generator),
        )
        for transform in transforms:
            graph = transform(graph)
        graphs.append(graph)
    return graphs


def batch_of(cfg: CfgNode, sizes: Sequence[int] = (6, 1, 9, 3), seed: int = 0) -> Batch:
    """:func:`molecules` as one batch."""
    return Batch.from_data_list(molecules(cfg, sizes, seed=seed))
