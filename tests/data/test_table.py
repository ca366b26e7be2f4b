from typing import Any

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader as PyGDataLoader

from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import DataError


def random_graphs(count: int, seed: int = 0) -> list[Data]:
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for i in range(count):
        nodes, edges = 1 + i % 5, (i * 3) % 7
        graphs.append(
            Data(
                x=torch.randint(-300, 70_000, (nodes, 3), generator=generator),
                edge_index=torch.randint(0, nodes, (2, edges), generator=generator),
                edge_attr=torch.randint(0, 2, (edges, 4), generator=generator).float(),
                pe=torch.randn(nodes, 2, generator=generator),
                y=torch.randn(1, 2, generator=generator),
                weight=torch.tensor(float(i)),
            )
        )
    return graphs


def assert_same_graph(left: Data, right: Data) -> None:
    assert sorted(left.to_dict()) == sorted(right.to_dict())
    for key, value in left.to_dict().items():
        assert value.dtype == right[key].dtype and torch.equal(value, right[key]), key


def assert_same_batch(left: Batch, right: Batch) -> None:
    assert type(left) is type(right)
    assert list(left.keys()) == list(right.keys()) and left.num_graphs == right.num_graphs
    assert left._store.__dict__.get("_num_nodes") == right._store.__dict__.get("_num_nodes")
    parts, offsets = ((getattr(b, name) for b in (left, right)) for name in ("_slice_dict", "_inc_dict"))
    for ours, theirs in ((left, right), parts, offsets):
        assert list(ours.keys()) == list(theirs.keys())
        for key in ours.keys():  # noqa: SIM118 - a batch iterates over more than its keys
            torch.testing.assert_close(ours[key], theirs[key], rtol=0, atol=0, msg=key)
    for i in range(right.num_graphs):
        torch.testing.assert_close(left[i].to_dict(), right[i].to_dict(), rtol=0, atol=0)


class Counting(Data):
    """Numbers of its own in each graph."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return 100 if key == "own" else super().__inc__(key, value, *args, **kwargs)


def _with_counted_nodes(graph: Data, i: int) -> None:
    graph.num_nodes = graph.x.size(0) + 2
    graph.pair_index = torch.arange(2 * i).view(2, i) % graph.num_nodes
    graph.root_index = torch.tensor(i % graph.num_nodes)


def _without_features(graph: Data, i: int) -> None:
    del graph.x


def _with_a_batch_of_its_own(graph: Data, i: int) -> None:
    graph.part_batch = torch.arange(graph.num_nodes) % 2


def _with_a_mask_called_index(graph: Data, i: int) -> None:
    graph.index_mask = torch.arange(graph.num_nodes) % 2 == 0


CHANGES = [
    None,
    _with_counted_nodes,
    _without_features,
    _with_a_batch_of_its_own,
    _with_a_mask_called_index,
    Counting,
]


@pytest.mark.filterwarnings("ignore:Unable to accurately infer")
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: getattr(change, "__name__", "plain"))
def test_batches_are_those_that_pyg_makes(change: Any) -> None:
    graphs = random_graphs(12)
    for i, graph in enumerate(graphs):
        if change is Counting:
            graphs[i] = Counting(own=torch.arange(2), **graph.to_dict())
        elif change is not None:
            change(graph, i)
    table = GraphTable.from_graphs(graphs)
    for some, numbers in ((table, [3, 1, -2, 1]), (table, [7]), (table.select([7, 2, 5, 0]), [3, -1, 0])):
        expected = Batch.from_data_list([some[i] for i in numbers])
        assert_same_batch(some.batch(numbers), expected)
        (loaded,) = PyGDataLoader(some, batch_sampler=[numbers])
        assert_same_batch(loaded, expected)
    with pytest.raises(IndexError):
        table.batch([0, 12])


def test_changing_a_batch_does_not_change_the_table() -> None:
    table = GraphTable.from_graphs(random_graphs(3))
    before = table[1].pe.clone()
    table.batch([1]).pe.mul_(5)
    assert torch.equal(table[1].pe, before)


def test_graphs_come_back_as_they_went_in() -> None:
    graphs = random_graphs(20)
    table = GraphTable.from_graphs(graphs)
    restored = GraphTable.from_state(table.to_state())
    for i, graph in enumerate(graphs):
        assert_same_graph(graph, table[i])
        assert_same_graph(graph, restored[i])
    assert_same_graph(graphs[-1], table[-1])


def test_joined_tables_equal_one_table_although_their_narrow_types_differ() -> None:
    graphs = random_graphs(20)
    graphs[3].edge_attr = graphs[3].edge_attr + 0.25  # this chunk cannot be kept as integers
    graphs[3].x = graphs[3].x.clamp(0, 3)
    joined = GraphTable.join([GraphTable.from_graphs(graphs[:3]), GraphTable.from_graphs(graphs[3:4])])
    joined = GraphTable.join([joined, GraphTable.from_graphs(graphs[4:])])
    for graph, other in zip(graphs, joined, strict=True):
        assert_same_graph(graph, other)


def test_whole_numbers_are_stored_narrow() -> None:
    table = GraphTable.from_graphs([Data(x=torch.tensor([[0, 118]]), edge_index=torch.zeros(2, 0).long())])
    assert table.to_state()["x"]["values"].dtype == torch.uint8
    assert table[0].x.dtype == torch.int64


def test_nan_and_fractions_stay_floats() -> None:
    table = GraphTable.from_graphs([Data(x=torch.ones(1, 1), y=torch.tensor([[float("nan"), 1.0]]))])
    assert torch.isnan(table[0].y[0, 0])


def test_changing_a_graph_does_not_change_the_table() -> None:
    table = GraphTable.from_graphs(random_graphs(3))
    before = table[1].pe.clone()
    table[1].pe.mul_(5)
    assert torch.equal(table[1].pe, before)


def test_views_select_and_slice() -> None:
    graphs = random_graphs(10)
    table = GraphTable.from_graphs(graphs)
    view = table.select([7, 2, 5])
    assert len(view) == 3
    assert_same_graph(view[0], graphs[7])
    assert_same_graph(view[1:][1], graphs[5])
    assert view.num_nodes().tolist() == [graphs[i].num_nodes for i in (7, 2, 5)]
    assert view.num_edges().tolist() == [graphs[i].num_edges for i in (7, 2, 5)]
    assert torch.equal(view.targets(), torch.cat([graphs[i].y for i in (7, 2, 5)]))
    with pytest.raises(IndexError):
        view[3]


def test_graphs_with_different_attributes_are_refused() -> None:
    graphs = random_graphs(2)
    del graphs[1].pe
    with pytest.raises(DataError, match="graph 1 has attributes"):
        GraphTable.from_graphs(graphs)


def test_tables_whose_attributes_differ_are_not_joined() -> None:
    with_pe, without = random_graphs(2), random_graphs(3)
    for graph in without:
        del graph.pe
    for first, second in ((with_pe, without), (without, with_pe)):
        tables = GraphTable.from_graphs(first), GraphTable.from_graphs(second)
        with pytest.raises(DataError, match=rf"graph {len(first)} has attributes .*graph 0 has"):
            GraphTable.join(tables)


def test_fractions_behind_whole_numbers_are_not_cut() -> None:
    parts = [[Data(x=torch.ones(1, 1), z=value)] for value in (torch.tensor([1]), torch.tensor([0.5]))]
    joined = GraphTable.join([GraphTable.from_graphs(part) for part in parts])
    assert [graph.z.item() for graph in joined] == [1, 0.5]


def test_attributes_that_cannot_be_stored_are_named() -> None:
    for values in (("C", "CC"), (torch.ones(1, 2), torch.ones(1, 3))):
        with pytest.raises(DataError, match="graph attribute 'z'"):
            GraphTable.from_graphs([Data(x=torch.ones(1, 1), z=value) for value in values])
