"""Node tasks on datasets that a user's own code brings through GraphGym's ``register_loader``."""

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.graphgym import register
from torch_geometric.utils import erdos_renyi_graph

from graphgps_pearl import data
from graphgps_pearl.errors import ConfigError, DataError

MASKS = torch.arange(30).view(-1, 1).add(torch.arange(4)).remainder(3)


@pytest.fixture
def own(monkeypatch):
    """One graph with four splits, ``one``, and five graphs, ``many``."""
    torch.manual_seed(0)

    def graph(**more) -> Data:
        return Data(
            x=torch.randn(30, 4), edge_index=erdos_renyi_graph(30, 0.2), y=torch.arange(30) % 3, **more
        )

    masks = {f"{split}_mask": i == MASKS for i, split in enumerate(("train", "val", "test"))}
    held = {"one": [graph(**masks)], "many": [graph() for _ in range(5)]}
    monkeypatch.setattr(register, "loader_dict", {"own": lambda form, name, folder: held.get(name)})
    return held


def test_masks_are_the_splits_of_one_graph(make_cfg, own) -> None:
    settings = {"task": "node", "task_type": "classification"}
    for number in (0, 3):
        bundle = data.load(make_cfg("own", "one", split_index=number, **settings))
        spec = bundle.spec
        assert (spec.task, spec.transductive, spec.dim_in, spec.dim_out) == ("node", True, 4, 3)
        for i, part in enumerate(bundle.splits.values()):
            expected = torch.where(MASKS[:, number] == i, own["one"][0].y, -1)
            assert torch.equal(part[0].y, expected) and "train_mask" not in part[0]
    with pytest.raises(ConfigError, match=r"dataset.split_index: 4 must be between 0 and 3"):
        data.load(make_cfg("own", "one", split_index=4, **settings))


def test_many_graphs_with_a_label_for_each_node(make_cfg, own) -> None:
    settings = {
        "task": "node",
        "task_type": "classification",
        "split_mode": "random",
        "split": [0.6, 0.2, 0.2],
    }
    bundle = data.load(make_cfg("own", "many", transductive=False, **settings))
    assert [len(part) for part in bundle.splits.values()] == [3, 1, 1]
    assert all(len(graph.y) == 30 for graph in bundle.splits["train"]) and bundle.spec.dim_out == 3
    with pytest.raises(ConfigError, match=r"dataset.transductive: True is for one graph, and many has 5"):
        data.load(make_cfg("own", "many", **settings))


def test_real_valued_targets_of_nodes(make_cfg, own) -> None:
    own["one"][0].y = torch.randn(30)
    bundle = data.load(make_cfg("own", "one", task="node", task_type="regression", standardise=True))
    train = bundle.splits["train"][0].y
    assert train.shape == (30, 1) and bundle.moments is not None
    known = train[~train.isnan()]
    assert len(known) == 10 and abs(float(known.mean())) < 1e-5


def test_masks_that_overlap_are_said_and_masks_of_other_nodes_are_refused(make_cfg, own, caplog) -> None:
    settings = {"task": "node", "task_type": "classification"}
    graph = own["one"][0]
    graph.test_mask[:, 0] |= graph.train_mask[:, 0]
    data.load(make_cfg("own", "one", **settings))
    assert "one: 10 nodes of split 'test' are in it twice or in a split before it" in caplog.text
    graph.test_mask = torch.ones(40, 4, dtype=torch.bool)
    with pytest.raises(DataError, match=r"split 'test' of one has node 30, there are 0 to 29"):
        data.load(make_cfg("own", "one", **settings))
