"""R-PEARL's encoding of a node needs its neighbourhood only, so the whole graph need not fit into memory."""

import pytest
import torch
from torch_geometric.data import Batch, Data
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


@pytest.mark.parametrize("distribution", ["gaussian", "sobol"])
def test_numbers_of_the_nodes_are_enough_for_equal_samples(distribution):
    torch.manual_seed(0)
    edge_index = to_undirected(erdos_renyi_graph(200, 0.012))
    encoder = RPEARL(4, num_samples=8, hidden_dim=6, num_layers=2, gso="adjacency", distribution=distribution)
    encoder = encoder.double().eval()
    whole = encoder(edge_index, num_nodes=200)
    assert torch.equal(encoder(edge_index, num_nodes=200, node_id=torch.arange(200)), whole)
    parts = []
    for seed in (3, 70, 150):  # three subgraphs in one batch, which may share nodes
        nodes, part, where, _ = k_hop_subgraph(seed, 2, edge_index, relabel_nodes=True, num_nodes=200)
        parts.append(Data(edge_index=part, num_nodes=len(nodes), n_id=nodes, where=where))
    batch = Batch.from_data_list(parts)
    found = encoder(batch)[batch.where + batch.ptr[:-1]]
    torch.testing.assert_close(found, whole[[3, 70, 150]], rtol=1e-12, atol=1e-12)


def test_in_training_a_node_has_the_same_samples_in_all_parts_of_a_batch_and_others_in_the_next():
    ring = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    edges, batch = torch.cat((ring, ring + 4), dim=1), torch.tensor([0] * 4 + [1] * 4)
    encoder = RPEARL(4, num_samples=3, hidden_dim=6, num_layers=1, norm="none").train()
    numbers = torch.tensor([10, 11, 12, 13] * 2)
    first, second = (encoder(edges, batch, node_id=numbers) for _ in range(2))
    assert torch.equal(first[:4], first[4:]) and not torch.equal(first, second)
    apart = encoder(edges, batch)
    assert not torch.equal(apart[:4], apart[4:])


def test_numbers_of_another_count_are_refused():
    with pytest.raises(ValueError, match="node_id must hold one whole number for each of the 2 nodes"):
        RPEARL(2)(torch.tensor([[0, 1], [1, 0]]), node_id=torch.arange(3))
