"""Small graphs, batches and configs on which every encoder is tested."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from graphgps_pearl import config

NUM_TYPES = 7
BASE = f"""
dataset: {{node_encoder: True, node_encoder_name: TypeDictNode, node_encoder_num_types: {NUM_TYPES},
          node_encoder_bn: False, edge_encoder: True, edge_encoder_name: TypeDictEdge,
          edge_encoder_num_types: 4, edge_encoder_bn: False, edge_encoder_dim_in: 1, task: graph,
          task_type: regression}}
model: {{type: GPSModel, loss_fun: l1}}
gt: {{layer_type: GINE+Transformer, layers: 2, n_heads: 4, dim_hidden: 32}}
gnn: {{dim_inner: 32, head: san_graph}}
posenc_RPEARL: {{dim_pe: 6, hidden_dim: 8, num_layers: 2, num_samples: 5}}
posenc_BPEARL: {{dim_pe: 6, hidden_dim: 8, num_layers: 2, num_taps: 3}}
posenc_RWSE: {{dim_pe: 5, model: Linear, raw_norm_type: BatchNorm, kernel: {{times_func: "range(1,9)"}}}}
posenc_LapPE: {{dim_pe: 4, model: DeepSet, layers: 2, post_layers: 2, eigen: {{max_freqs: 4}}}}
posenc_SignNet: {{dim_pe: 4, model: DeepSet, layers: 2, post_layers: 2, phi_hidden_dim: 8, phi_out_dim: 4,
                 eigen: {{max_freqs: 4}}}}
posenc_SPE: {{dim_pe: 4, layers: 2, phi_hidden_dim: 8, phi_out_dim: 3, post_layers: 2, post_hidden_dim: 8,
             eigen: {{max_freqs: 0}}}}
posenc_BasisNet: {{dim_pe: 4, phi_hidden_dim: 6, phi_out_dim: 5, eigen: {{max_freqs: 4}}}}
posenc_EquivStableLapPE: {{eigen: {{max_freqs: 4}}}}
posenc_GSN: {{dim_pe: 4, max_cycle: 6, max_clique: 4}}
posenc_RandomID: {{dim_pe: 3}}
"""


def encoder_config(composition: str, *overrides: object) -> Any:
    """The config above with this ``dataset.node_encoder_name`` and ``KEY VALUE`` words over it."""
    return config.parse(BASE, ["dataset.node_encoder_name", composition, *overrides])


def undirected(pairs: Sequence[tuple[int, int]]) -> Tensor:
    """Both directions of the given edges, [2, E]."""
    one_way = torch.tensor(pairs, dtype=torch.long).reshape(-1, 2).T
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def ring(n: int) -> Tensor:
    """A cycle of n nodes, whose Laplacian has repeated eigenvalues."""
    return undirected([(i, (i + 1) % n) for i in range(n)])


def molecule(n: int, seed: int = 0) -> Tensor:
    """A random tree of n nodes with one ring closed."""
    generator = torch.Generator().manual_seed(seed)
    tree = [(int(torch.randint(i, (), generator=generator)), i) for i in range(1, n)]
    return undirected([*tree, (0, n - 1)] if (0, n - 1) not in tree else tree)


def graph(edge_index: Tensor, n: int, transforms: Sequence[BaseTransform] = (), seed: int = 0) -> Data:
    """A graph with random node and edge types, prepared."""
    generator = torch.Generator().manual_seed(seed)
    data = Data(
        x=torch.randint(NUM_TYPES, (n, 1), generator=generator),
        edge_index=edge_index,
        edge_attr=torch.randint(4, (edge_index.size(1),), generator=generator),
        y=torch.zeros(1, 1),
    )
    for transform in transforms:
        data = transform(data)
    return data


def graphs(transforms: Sequence[BaseTransform] = ()) -> list[Data]:
    """Molecule-like graphs and awkward ones: tiny, disconnected, symmetric, without edges, a single node."""
    shapes = [
        (molecule(9, 1), 9),
        (ring(6), 6),
        (undirected([(0, 1), (1, 2), (3, 4)]), 6),  # two components and an isolated node
        (undirected([(0, 1)]), 2),
        (undirected([]), 3),
        (undirected([]), 1),
        (molecule(7, 2), 7),
    ]
    return [graph(edges, n, transforms, seed=i) for i, (edges, n) in enumerate(shapes)]


def batch_of(data: Sequence[Data]) -> Batch:
    """A fresh batch: encoders write into what they are given, so the graphs are cloned."""
    return Batch.from_data_list([d.clone() for d in data])
