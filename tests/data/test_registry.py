import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.graphgym import register

from graphgps_pearl import data
from graphgps_pearl.data import registry
from graphgps_pearl.data.base import DatasetSpec, Items, Source
from graphgps_pearl.errors import ConfigError, DataError


@pytest.fixture
def own_source(monkeypatch):
    """A dataset as a user adds one: a class and a decorator."""
    data.available()  # before: what it registers must outlast the test
    monkeypatch.setattr(registry, "_SOURCES", dict(registry._SOURCES))

    @data.register_dataset("mine", "rings")
    class Rings(Source):
        standard_split_mode = "cv-kfold-5"

        def spec(self) -> DatasetSpec:
            return DatasetSpec("rings", "regression", 1, 0, 1, ("size",))

        def fingerprint(self) -> dict:
            return {}

        def items(self) -> Items:
            def graph(i: int) -> Data:
                nodes = torch.arange(i + 3)
                ring = torch.stack([nodes, nodes.roll(1)])
                return Data(x=torch.ones(i + 3, 1), edge_index=ring, y=torch.tensor([[i + 3.0]]))

            return Items("rings", 20, graph, lambda i: f"ring {i}")

    return Rings


def test_a_new_dataset_is_a_class_and_a_decorator(own_source, make_cfg) -> None:
    bundle = data.load(make_cfg("mine", "rings"))
    assert {name: len(part) for name, part in bundle.splits.items()} == {"train": 12, "val": 4, "test": 4}


def test_registering_twice_changes_nothing_and_another_under_its_name_is_refused(own_source) -> None:
    assert data.register_dataset("mine", "rings")(own_source) is own_source
    with pytest.raises(KeyError, match="mine/rings is already registered"):
        data.register_dataset("mine", "rings")(type("Other", (Source,), {}))


def test_everything_promised_is_registered() -> None:
    held = set(data.available())
    promised = {
        ("PyG-ZINC", "subset"),
        ("PyG-ZINC", "full"),
        ("OGB", "peptides-structural"),
        ("OGB", "peptides-functional"),
        ("PyG-LRGB", "Peptides-struct"),
        ("PyG-LRGB", "Peptides-func"),
        ("PyG-GNNBenchmarkDataset", "CSL"),
        ("PyG-TUDataset", "REDDIT-BINARY"),
        ("PyG-TUDataset", "REDDIT-MULTI-5K"),
        ("embedded", "wehi-logp"),
        ("embedded", "peptides-3d"),
        ("embedded", "nci-ood"),
        ("csv", "*"),
    }
    domains = ("assay", "scaffold", "size")
    promised |= {("DrugOOD", f"lbap_core_{m}_{domain}") for m in ("ic50", "ec50") for domain in domains}
    assert promised <= held


class ThirdParty(InMemoryDataset):
    def __init__(self) -> None:
        super().__init__()
        none = torch.zeros(2, 0).long()
        graphs = [Data(x=torch.ones(3, 2), edge_index=none, y=torch.tensor([i / 2])) for i in range(10)]
        self.data, self.slices = self.collate(graphs)
        self.split_idxs = [list(range(6)), [6, 7], [8, 9]]


def test_loaders_registered_with_graphgym_are_asked(make_cfg, monkeypatch) -> None:
    asked = []

    def loader(data_format: str, name: str, folder: str):
        asked.append((data_format, name, folder))
        return ThirdParty() if data_format == "theirs" else None

    monkeypatch.setitem(register.loader_dict, "theirs", loader)
    cfg = make_cfg("theirs", "thing")
    assert data.spec(cfg) is None
    bundle = data.load(cfg)
    assert asked == [("theirs", "thing", cfg.dataset.dir)]
    assert {name: len(part) for name, part in bundle.splits.items()} == {"train": 6, "val": 2, "test": 2}
    assert (bundle.spec.dim_in, bundle.spec.edge_dim, bundle.spec.dim_out) == (2, 0, 1)
    assert bundle.splits["val"][0].y.shape == (1, 1) and bundle.cache_file is None
    with pytest.raises(ConfigError, match="none of the 1 registered GraphGym loaders answers"):
        data.load(make_cfg("nobody's", "thing"))
    # Names of ours are ours whatever is registered.
    assert data.spec(make_cfg("embedded", "wehi-logp")).name == "wehi-logp"


@pytest.mark.parametrize("outside", [6, -1])
def test_a_split_of_a_loader_has_graphs_that_are_there(make_cfg, monkeypatch, caplog, outside: int) -> None:
    class Theirs(list):
        split_idxs = ([0, 1, 2], [3, 2], [4, 5])

    def graph() -> Data:
        return Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=torch.ones(1))

    theirs = Theirs(graph() for _ in range(6))
    monkeypatch.setitem(register.loader_dict, "theirs", lambda *_: theirs)
    cfg = make_cfg("Theirs", "own")
    assert len(data.load(cfg).splits["val"]) == 2
    assert "1 graphs of split 'val' are in it twice or in a split before it" in caplog.text
    theirs.split_idxs = ([0, 1, 2], [3], [4, 5, outside])
    with pytest.raises(DataError, match=f"split 'test' of own has graph {outside}, there are 0 to 5"):
        data.load(cfg)


@pytest.mark.parametrize(
    ("task_type", "y", "expected", "dim_out"),
    [
        ("regression", torch.tensor([7]), torch.tensor([[7.0]]), 1),
        ("regression", 7, torch.tensor([[7.0]]), 1),
        ("classification_binary", torch.tensor([[1]]), torch.tensor([[1.0]]), 1),
        ("classification_multilabel", torch.tensor([[1, 0, 1]]), torch.tensor([[1.0, 0.0, 1.0]]), 3),
        ("classification", torch.tensor([2.0]), torch.tensor([2]), 3),
        ("classification", torch.tensor([[2]]), torch.tensor([2]), 3),
    ],
)
def test_targets_of_a_loader_are_those_of_the_task_whatever_numbers_they_are(
    make_cfg, monkeypatch, task_type, y, expected, dim_out
) -> None:
    graph = Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
    monkeypatch.setitem(register.loader_dict, "theirs", lambda *_: [graph] * 10)
    bundle = data.load(make_cfg("Theirs", "own", task_type=task_type, split_mode="random"))
    found = bundle.splits["train"][0].y
    assert found.dtype == expected.dtype and torch.equal(found, expected)
    assert bundle.spec.dim_out == dim_out


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (torch.tensor([0.5]), "its class is 0.5, which is no whole number"),
        (torch.tensor([[0, 1, 0]]), "y has 3 values, not one class for each of 1"),
        (None, "has no y"),
    ],
)
def test_a_loaders_graph_without_a_class_is_named(make_cfg, monkeypatch, y, said: str) -> None:
    graph = Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)
    monkeypatch.setitem(register.loader_dict, "theirs", lambda *_: [graph] * 10)
    with pytest.raises(DataError, match=f"the first is graph 0 of own: {said}"):
        data.load(make_cfg("Theirs", "own", task_type="classification", split_mode="random"))


@pytest.mark.parametrize("splits", [([0, 1], [2]), {"train": [0], "valid": [1], "test": [2]}])
def test_splits_of_a_loader_that_are_not_three_lists_are_one_line(make_cfg, monkeypatch, splits) -> None:
    theirs = ThirdParty()
    theirs.split_idxs = splits
    monkeypatch.setitem(register.loader_dict, "theirs", lambda *_: theirs)
    with pytest.raises(DataError, match=r"split_idxs: expected three lists of graph numbers"):
        data.load(make_cfg("theirs", "any"))
