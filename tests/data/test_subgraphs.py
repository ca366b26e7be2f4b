"""Neighbourhoods of nodes of one graph."""

from pathlib import Path

import pytest
import torch
from helpers.public_files import write_geom_gcn
from torch_geometric.data import Data
from torch_geometric.utils import erdos_renyi_graph, k_hop_subgraph

from graphgps_pearl import data
from graphgps_pearl.data.subgraphs import Neighbourhoods
from graphgps_pearl.errors import ConfigError


@pytest.fixture
def graph() -> Data:
    torch.manual_seed(0)
    edge_index = erdos_renyi_graph(60, 0.06, directed=True)
    edge_attr = torch.randn(edge_index.size(1), 2)
    return Data(x=torch.randn(60, 3), edge_index=edge_index, edge_attr=edge_attr, y=torch.arange(60) % 4)


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_all_neighbours_are_pygs_k_hop_subgraph(graph: Data, hops: int) -> None:
    roots = torch.tensor([0, 17, 59])
    for root, part in zip(roots.tolist(), Neighbourhoods(graph, roots, hops), strict=True):
        nodes, edges, _, kept = k_hop_subgraph(root, hops, graph.edge_index, num_nodes=60)
        assert part.n_id[0] == root and sorted(part.n_id.tolist()) == nodes.tolist()
        assert torch.equal(part.x, graph.x[part.n_id])
        found = {
            (*pair, *row)
            for pair, row in zip(
                part.n_id[part.edge_index].t().tolist(), part.edge_attr.tolist(), strict=True
            )
        }
        pairs = zip(edges.t().tolist(), graph.edge_attr[kept].tolist(), strict=True)
        assert found == {(*pair, *row) for pair, row in pairs}
        assert part.y[0] == graph.y[root] and (part.y[1:] == -1).all()


def test_few_neighbours_are_drawn_and_stay_the_same(graph: Data) -> None:
    roots = torch.arange(60)
    few = Neighbourhoods(graph, roots, 2, neighbours=2, seed=3)
    sizes = [part.num_nodes for part in few]
    assert max(sizes) <= 7 == int(few.num_nodes()[0]) and sum(sizes) > 60
    assert all(torch.equal(few[i].n_id, few[i].n_id) for i in range(60))
    other = Neighbourhoods(graph, roots, 2, neighbours=2, seed=4)
    assert any(not torch.equal(few[i].n_id, other[i].n_id) for i in range(60))
    assert len(few[:5]) == 5


@pytest.mark.parametrize("hops", [0, 2])
def test_parts_hold_every_labelled_node_once_and_their_neighbourhoods_whole(graph: Data, hops: int) -> None:
    labelled = torch.arange(0, 60, 3)
    parts = Neighbourhoods.parts(graph, 5, labelled, hops)
    seen = [part.n_id[part.y >= 0] for part in parts]
    assert len(parts) == 5 and torch.cat(seen).sort().values.equal(labelled)
    for part, most in zip(parts, parts.num_nodes().tolist(), strict=True):
        own = part.n_id[:12]  # 60 nodes in five parts
        nodes, edges, _, _ = k_hop_subgraph(own, hops, graph.edge_index, num_nodes=60)
        assert sorted(part.n_id.tolist()) == nodes.tolist() and part.num_nodes <= most
        assert part.num_edges == edges.size(1)
        assert part.y[part.y >= 0].equal(graph.y[part.n_id[part.y >= 0]])
    only_one = Neighbourhoods.parts(graph, 5, torch.tensor([7]), hops)
    assert len(only_one) == 1 and 7 in only_one[0].n_id[:12]


@pytest.mark.parametrize("count", [1, 7, 9, 45, 100])
def test_there_are_as_many_parts_as_asked_for(graph: Data, count: int) -> None:
    parts = Neighbourhoods.parts(graph, count, torch.arange(60), 0)
    sizes = [part.num_nodes for part in parts]
    assert len(sizes) == min(count, 60) and sum(sizes) == 60 and max(sizes) - min(sizes) <= 1


def test_parts_cut_few_edges_of_a_graph_with_places() -> None:
    """A grid of 20 x 20 whose nodes are numbered at random: 5 parts keep four edges of five."""
    place = torch.randperm(400, generator=torch.Generator().manual_seed(0))
    grid = place[torch.arange(400).view(20, 20)]
    pairs = torch.cat(
        [
            torch.stack((a.flatten(), b.flatten()))
            for a, b in ((grid[1:], grid[:-1]), (grid[:, 1:], grid[:, :-1]))
        ],
        1,
    )
    graph = Data(edge_index=torch.cat((pairs, pairs.flip(0)), 1), num_nodes=400, y=torch.zeros(400))
    parts = Neighbourhoods.parts(graph, 5, torch.arange(400), 0)
    assert sum(part.num_edges for part in parts) > 0.8 * graph.num_edges


def test_two_processes_have_different_roots(make_cfg, tmp_path: Path) -> None:
    write_geom_gcn(tmp_path, "cornell", 1703)
    settings = {"task": "node", "task_type": "classification", "check_totals": False, "subgraph_hops": 1}
    cfg = make_cfg("PyG-WebKB", "cornell", path=tmp_path, **settings)
    cfg.train.batch_size = 8
    train = data.load(cfg).splits["train"]
    seen = []
    for rank in (0, 1):
        for batch in data.make_loader(train, cfg, shuffle=True, rank=rank, world_size=2):
            seen += batch.n_id[batch.ptr[:-1]].tolist()
    assert sorted(seen) == sorted([int(group[0]) for group in train.groups]) and len(seen) == 36


@pytest.mark.parametrize("key", ["subgraph_hops", "subgraph_parts", "subgraph_neighbors"])
def test_graph_tasks_have_no_neighbourhoods(make_cfg, key: str) -> None:
    with pytest.raises(ConfigError, match=rf"dataset.{key}: 2 .*one graph"):
        data.spec(make_cfg("PyG-ZINC", "subset", **{key: 2}))


def test_neighbours_without_hops_are_refused(make_cfg) -> None:
    settings = {"task": "node", "task_type": "classification", "subgraph_parts": 4}
    with pytest.raises(ConfigError, match=r"dataset.subgraph_neighbors: 5 .* dataset.subgraph_hops is 0"):
        data.spec(make_cfg("PyG-Planetoid", "Cora", subgraph_neighbors=5, **settings))
