"""Graphs that would train wrongly, or abort in a kernel, are refused at loading with their number."""

import pytest
import torch
from torch_geometric.data import Data

from graphgps_pearl.data.base import BadRowError, DatasetSpec, as_target
from graphgps_pearl.data.checks import check_graphs
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import DataError


def graphs(**changed: object) -> GraphTable:
    """Four graphs of three nodes; the last but one is changed."""
    made = []
    for number in range(4):
        graph = Data(
            x=torch.tensor([[1, 0], [27, 0], [3, 5]]),
            edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]),
            edge_attr=torch.tensor([1, 2, 3]),
            y=torch.tensor([[0.5]]),
        )
        for key, value in changed.items() if number == 2 else ():
            graph[key] = value
        made.append(graph)
    return GraphTable.from_graphs(made)


@pytest.fixture
def cfg(make_cfg):
    cfg = make_cfg("PyG-ZINC", "subset").clone()
    cfg.defrost()
    cfg.dataset.node_encoder, cfg.dataset.node_encoder_name = True, "TypeDictNode+BPEARL"
    cfg.dataset.edge_encoder, cfg.dataset.edge_encoder_name = True, "TypeDictEdge"
    cfg.dataset.node_encoder_num_types, cfg.dataset.edge_encoder_num_types = 28, 4
    return cfg


SPEC = DatasetSpec("mine", "regression", dim_out=1)


def test_sound_graphs_pass(cfg):
    check_graphs(cfg, graphs(), SPEC)
    check_graphs(cfg, graphs(y=torch.tensor([[float("nan")]])), SPEC)  # a missing label


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("edge_index", torch.tensor([[0, -1], [1, 0]]), "an edge joins nodes -1 and 0"),
        ("edge_index", torch.tensor([[0, 1], [1, 3]]), "an edge joins nodes 1 and 3"),
        ("x", torch.tensor([[28, 0], [1, 0], [2, 0]]), "column 0 of x is 28, its encoder knows 0 to 27"),
        ("x", torch.tensor([[1, 0], [-1, 0], [2, 0]]), "column 0 of x is -1"),
        ("edge_attr", torch.tensor([1, 4, 1]), "column 0 of edge_attr is 4, its encoder knows 0 to 3"),
        ("y", torch.tensor([[float("inf")]]), r"has \[inf\], which is not finite"),
    ],
)
def test_what_is_wrong_is_said_with_the_graphs_number(cfg, key, value, message):
    changed = {key: value}
    if key == "edge_index":
        changed["edge_attr"] = torch.tensor([1, 2])
    with pytest.raises(DataError, match=rf"graph 2 of mine \(3 nodes\): {message}"):
        check_graphs(cfg, graphs(**changed), SPEC)


def test_real_features_must_be_finite(cfg):
    made = [
        Data(x=torch.tensor([[0.5], [v]]), edge_index=torch.zeros(2, 0, dtype=torch.long)) for v in (1, 2)
    ]
    check_graphs(cfg, GraphTable.from_graphs(made), SPEC)
    made[1].x[1] = float("nan")
    with pytest.raises(DataError, match="graph 1 of mine"):
        check_graphs(cfg, GraphTable.from_graphs(made), SPEC)


def test_ogbs_encoders_bound_every_column(cfg):
    cfg.dataset.node_encoder_name, cfg.dataset.edge_encoder_name = "Atom", "Bond"
    atom, bond = torch.tensor([[118, 4, 11, 11, 9, 5, 5, 1, 1]] * 3), torch.tensor([[4, 5, 1]] * 3)
    sound = [Data(x=atom, edge_attr=bond, edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))]
    check_graphs(cfg, GraphTable.from_graphs(sound), SPEC)
    for column in range(9):
        wrong = [sound[0].clone()]
        wrong[0].x[1, column] += 1
        with pytest.raises(DataError, match=f"graph 0 .*column {column} of x"):
            check_graphs(cfg, GraphTable.from_graphs(wrong), SPEC)


def test_classes_beyond_the_last_are_refused(cfg):
    spec = DatasetSpec("mine", "classification", dim_out=3)
    made = [Data(x=torch.ones(1, 1).long(), y=torch.tensor([label])) for label in (0, 2, 3)]
    check_graphs(cfg, GraphTable.from_graphs(made[:2]), spec)
    with pytest.raises(DataError, match=r"graph 2 of mine.*class is 3, not 0 to 2"):
        check_graphs(cfg, GraphTable.from_graphs(made), spec)
    made[0].y[0] = -1
    with pytest.raises(DataError, match=r"graph 0 of mine.*class is -1"):
        check_graphs(cfg, GraphTable.from_graphs(made[:1]), DatasetSpec("mine", "classification"))


def test_a_label_that_float32_makes_infinite_is_refused():
    with pytest.raises(BadRowError, match=r"1e\+300 is beyond the range of float32"):
        as_target([0.5, 1e300])
    assert as_target([3e38, float("nan")]).isfinite().tolist() == [[True, False]]


def test_a_table_with_more_types_than_a_byte_holds_is_no_bound(cfg):
    cfg.dataset.node_encoder_num_types = 300  # the types are stored as bytes
    check_graphs(cfg, graphs(), SPEC)
    check_graphs(cfg, graphs(x=torch.tensor([[299, 0], [1, 0], [2, 0]])), SPEC)
    with pytest.raises(DataError, match="column 0 of x is 300"):
        check_graphs(cfg, graphs(x=torch.tensor([[300, 0], [1, 0], [2, 0]])), SPEC)


def test_graphs_whose_number_of_nodes_is_not_known(cfg) -> None:
    table = GraphTable.from_graphs([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.zeros(1, 1))])
    with pytest.raises(DataError, match=r"mine: its graphs have neither x nor num_nodes; set num_nodes"):
        check_graphs(cfg, table, SPEC)
