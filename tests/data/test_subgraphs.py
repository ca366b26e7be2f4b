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
    assert sorted(seen) == sorted(train.roots.tolist()) and len(seen) == 36


def test_graph_tasks_have_no_neighbourhoods(make_cfg) -> None:
    with pytest.raises(ConfigError, match=r"dataset.subgraph_hops: 2 .*one graph"):
        data.spec(make_cfg("PyG-ZINC", "subset", subgraph_hops=2))
