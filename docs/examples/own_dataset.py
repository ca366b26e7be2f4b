"""Train on a PyG dataset of your own: register a function that returns it, and name it in a config.

    PYTHONPATH=. python docs/examples/own_dataset.py optim.max_epoch 20

The data here is a list of random graphs whose target is their number of triangles.
"""

import sys
from pathlib import Path

import torch
from torch_geometric.data import Data
from torch_geometric.graphgym.register import register_loader
from torch_geometric.utils import erdos_renyi_graph, to_dense_adj

from graphgps_pearl import cli


def triangles(seed: int) -> Data:
    """A random graph of 12 nodes; y is its number of triangles."""
    torch.manual_seed(seed)
    edge_index = erdos_renyi_graph(12, 0.4)
    adjacency = to_dense_adj(edge_index, max_num_nodes=12)[0]
    return Data(torch.ones(12, 1), edge_index, y=adjacency.matrix_power(3).trace().view(1, 1) / 6)


@register_loader("mine")
def load(format, name, dataset_dir):
    """Anything with len() that gives graphs by number: a PyG dataset, or a list."""
    if format == "mine" and name == "triangles":
        return [triangles(seed) for seed in range(200)]
    return None


if __name__ == "__main__":
    config = Path(__file__).with_suffix(".yaml")
    sys.exit(cli.main(["train", "--cfg", str(config), *sys.argv[1:]]))
