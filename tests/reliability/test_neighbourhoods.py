"""R-PEARL's encoding of a node needs its neighbourhood only, so the whole graph need not fit into memory."""

import pytest
import torch
from torch_geometric.utils import erdos_renyi_graph, k_hop_subgraph, to_undirected

from graphgps_pearl.pearl import RPEARL


@pytest.mark.parametrize("num_taps", [0, 1, 3])
def test_the_encoding_of_some_nodes_from_their_neighbourhood_is_that_of_the_whole_graph(num_taps):
    torch.manual_seed(0)
    edge_index = to_undirected(erdos_renyi_graph(200, 0.012))
    layers = 2
    encoder = RPEARL(4, num_samples=8, hidden_dim=6, num_layers=layers, num_taps=num_taps, gso="adjacency")
    encoder = encoder.double().eval()
    samples = torch.randn(200, 8, dtype=torch.float64)
    whole = encoder(edge_index, num_nodes=200, samples=samples)

    hops = layers + max(num_taps - 1, 0)
    seeds = torch.tensor([3, 70, 150])
    nodes, part, where, _ = k_hop_subgraph(seeds, hops, edge_index, relabel_nodes=True, num_nodes=200)
    assert len(nodes) < 200
    found = encoder(part, num_nodes=len(nodes), samples=samples[nodes])
    torch.testing.assert_close(found[where], whole[seeds], rtol=1e-12, atol=1e-12)
