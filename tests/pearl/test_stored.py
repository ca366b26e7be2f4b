"""Plans stored with graphs: the same encoding, through everything PyG does to graphs, or an error."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from helpers import oracle
from helpers.graphs import molecule_like, random_graph
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.pearl import BPEARL, GSOS, BPEARLPlan, stored_plan

SETTINGS = {"num_taps": 3, "num_layers": 3, "gso": "random_walk"}


def graphs() -> list[Data]:
    directed = torch.tensor([[0, 1, 1, 2, 3, 0], [1, 2, 1, 0, 0, 1]])
    shapes = [
        (molecule_like(19), 19),
        (directed, 5),  # a loop, a duplicate, a node by itself
        (torch.empty(2, 0, dtype=torch.long), 1),
        (torch.empty(2, 0, dtype=torch.long), 0),
        (random_graph(8), 8),
        (molecule_like(19), 19),
        (torch.empty(2, 0, dtype=torch.long), 0),
    ]
    return [Data(edge_index=edges, num_nodes=n, y=torch.tensor([i])) for i, (edges, n) in enumerate(shapes)]


def planned() -> list[Data]:
    return [BPEARLPlan(**SETTINGS)(graph) for graph in graphs()]


def module(**options: object) -> BPEARL:
    torch.manual_seed(0)
    return BPEARL(**({"dim_pe": 3, "hidden_dim": 4, "act": "tanh"} | SETTINGS | options)).double()


def assert_same_with_plan(pe: BPEARL, batch: Batch) -> None:
    plan = stored_plan(batch)
    assert plan is not None
    fast, slow = pe(batch.edge_index, batch.batch, plan=plan), pe(batch.edge_index, batch.batch)
    oracle.close(fast, slow, "output")
    for a, b in zip(
        *(torch.autograd.grad(p.sum(), list(pe.parameters())) for p in (fast, slow)), strict=True
    ):
        oracle.close(a, b, "gradient")


@pytest.mark.parametrize("norm", ["batch", "graph", "layer"])
@pytest.mark.parametrize("gso", GSOS)
def test_every_operator_and_norm(norm: str, gso: str) -> None:
    pe = module(norm=norm, gso=gso)
    data = [BPEARLPlan(3, 3, gso)(graph) for graph in graphs()]
    assert_same_with_plan(pe, Batch.from_data_list(data))


@pytest.mark.parametrize(("num_taps", "num_layers"), [(0, 2), (1, 0), (1, 3), (4, 0)])
def test_every_depth(num_taps: int, num_layers: int) -> None:
    pe = module(num_taps=num_taps, num_layers=num_layers)
    data = [BPEARLPlan(num_taps, num_layers, "random_walk")(graph) for graph in graphs()]
    assert_same_with_plan(pe, Batch.from_data_list(data))


@pytest.mark.parametrize("num_workers", [0, 2])
def test_through_a_loader(num_workers: int) -> None:
    pe = module()
    batches = list(DataLoader(planned(), batch_size=2, num_workers=num_workers))
    assert len(batches) == 4
    for batch in batches:
        assert_same_with_plan(pe, batch)


def test_a_single_graph_without_batch() -> None:
    pe, graph = module(), planned()[0]
    oracle.close(pe(graph.edge_index, plan=stored_plan(graph)), pe(graph.edge_index), "output")


def test_back_to_a_list_and_to_another_batch() -> None:
    again = Batch.from_data_list(planned()).to_data_list()
    for before, after in zip(planned(), again, strict=True):
        assert all(torch.equal(before[key], after[key]) for key in before.to_dict() if key != "num_nodes")
    assert_same_with_plan(module(), Batch.from_data_list([again[3], again[0]]))


def test_through_files_and_the_data_cache(tmp_path: Path) -> None:
    torch.save(planned(), tmp_path / "graphs.pt")
    assert_same_with_plan(
        module(), Batch.from_data_list(torch.load(tmp_path / "graphs.pt", weights_only=False))
    )
    torch.save(GraphTable.from_graphs(planned()).to_state(), tmp_path / "table.pt")
    table = GraphTable.from_state(torch.load(tmp_path / "table.pt", weights_only=True))
    assert_same_with_plan(module(), Batch.from_data_list(list(table)))


def test_all_numbers_have_32_bits() -> None:
    stored = {key: value for key, value in planned()[0].to_dict().items() if key.startswith("bpearl_")}
    assert {value.dtype for key, value in stored.items() if key != "bpearl_edges"} == {torch.int32}


def test_no_plan_is_none() -> None:
    assert stored_plan(Batch.from_data_list(graphs())) is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_layers": 4}, "num_layers=3, the encoding has num_taps=3, num_layers=4"),
        ({"num_taps": 1}, "num_taps=3, num_layers=3, the encoding has num_taps=1"),
    ],
)
def test_another_depth_is_refused(options: dict, message: str) -> None:
    batch = Batch.from_data_list(planned())
    with pytest.raises(ValueError, match=message):
        module(**options)(batch.edge_index, batch.batch, plan=stored_plan(batch))


def test_another_operator_is_refused_where_it_matters() -> None:
    coarse = Batch.from_data_list([BPEARLPlan(3, 3, "adjacency")(graph) for graph in graphs()])
    with pytest.raises(ValueError, match="another operator"):
        module()(coarse.edge_index, coarse.batch, plan=stored_plan(coarse))
    assert_same_with_plan(module(gso="laplacian"), coarse)
    assert_same_with_plan(module(gso="laplacian"), Batch.from_data_list(planned()))  # finer than needed


def test_changed_graphs_are_refused() -> None:
    batch = Batch.from_data_list(planned())
    plan, edges = stored_plan(batch), batch.edge_index
    renamed = edges.clone()
    renamed[renamed == 0], renamed[edges == 1] = 1, 0
    for other in (edges[:, 1:], renamed, torch.cat([edges, edges[:, :1]], dim=1)):
        with pytest.raises(ValueError, match="other edges"):
            module()(other, batch.batch, plan=plan)
    shuffled = edges[:, torch.randperm(edges.size(1))]
    oracle.close(module()(shuffled, batch.batch, plan=plan), module()(edges, batch.batch), "shuffled edges")


def test_plans_of_different_settings_do_not_mix() -> None:
    first, second = graphs()[:2]
    for other in (BPEARLPlan(3, 2), BPEARLPlan(2, 4), BPEARLPlan(3, 3, "adjacency")):
        mixed = Batch.from_data_list([BPEARLPlan(**SETTINGS)(first.clone()), other(second.clone())])
        with pytest.raises(ValueError, match="different settings"):
            stored_plan(mixed)


def test_the_text_carries_every_setting_that_matters() -> None:
    assert repr(BPEARLPlan(3, 4)) == (
        "BPEARLPlan(num_taps=3, num_layers=4, degrees=True, pairs=False, format=2)"
    )
    assert repr(BPEARLPlan(1, 4, "random_walk")) == repr(BPEARLPlan(1, 4, "adjacency"))
    with pytest.raises(ValueError, match="unknown gso"):
        BPEARLPlan(1, 4, "laplace")
    with pytest.raises(ValueError, match="no encoding"):
        BPEARLPlan(0, 0)
