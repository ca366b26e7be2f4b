"""Stages: made once, read back, the same in several processes."""

import logging
import multiprocessing
from pathlib import Path

import pytest
import torch
from helpers.prepared import SMILES, Scale, prepared
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddRandomWalkPE, BaseTransform

from graphgps_pearl import data, memory
from graphgps_pearl.data import stages
from graphgps_pearl.errors import DataError


def test_the_second_load_reads_the_cache(cfg, monkeypatch, caplog) -> None:
    caplog.set_level(logging.INFO)
    first = data.load(cfg)
    assert first.prepare_seconds > 0 and "s per 1000 graphs" in caplog.text
    assert first.cache_file in prepared(cfg)
    monkeypatch.setattr("graphgps_pearl.data.stages.read", lambda *_: pytest.fail("read again"))
    second = data.load(cfg)
    assert second.prepare_seconds == 0
    for split in ("train", "val", "test"):
        assert torch.equal(first.splits[split].targets(), second.splits[split].targets())


def test_transforms_are_keyed_by_their_settings_and_run_once(cfg) -> None:
    Scale.runs = 0
    one, again, two = (data.load(cfg, [Scale(factor)]) for factor in (1.0, 1.0, 2.0))
    assert Scale.runs == 2 * len(SMILES)
    assert one.splits["train"][0].pe[0] == again.splits["train"][0].pe[0] == 1
    assert two.splits["train"][0].pe[0] == 2
    assert "pe" not in data.load(cfg).splits["train"][0]
    assert len(prepared(cfg)) == 3  # the graphs once, and twice what the transforms made of them


def test_a_preparation_that_would_not_fit_in_memory_is_refused(cfg, table, monkeypatch) -> None:
    rows = [f"{'C' * (3 + i % 19)}O,{i}\n" for i in range(400)]
    table.write_text("smiles,y\n" + "".join(rows))
    monkeypatch.setattr(memory, "_SMALL", 0)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 1000)
    with pytest.raises(
        DataError, match=r"preparing 400 graphs of mine takes about .* MB, .*fewer eigenvectors"
    ):
        data.load(cfg, [AddRandomWalkPE(8)])


def test_what_a_long_preparation_takes_is_said_before(cfg, table, caplog) -> None:
    rows = [f"{'C' * (3 + i % 19)}O,{i}\n" for i in range(400)]
    table.write_text("smiles,y\n" + "".join(rows))
    caplog.set_level(logging.INFO)
    loaded = data.load(cfg, [AddRandomWalkPE(8)])
    said = next(r for r in caplog.records if r.getMessage().startswith("preparing 400 graphs of mine: about"))
    assert caplog.records.index(said) < len(caplog.records) - 1
    foretold = 400 * 1e3 * float(said.getMessage().split("(")[1].split(" kB")[0])
    assert foretold == pytest.approx(loaded.splits["train"].num_bytes(), rel=0.3)  # of all splits together


@pytest.mark.parametrize("change", ["content", "features", "version", "subset"])
def test_whatever_the_graphs_depend_on_changes_the_key(cfg, table, monkeypatch, change) -> None:
    before = data.load(cfg).cache_file
    if change == "content":
        table.write_text(table.read_text().replace("CCO,0", "CCO,0.5"))
    elif change == "features":
        cfg.dataset.features = "attentivefp"
    elif change == "version":
        monkeypatch.setattr("graphgps_pearl.data.datasets.csv_file.CsvFile.version", 99)
    else:
        cfg.dataset.subset = 6
    assert data.load(cfg).cache_file != before


def test_an_interrupted_preparation_leaves_nothing(cfg) -> None:
    def stop(graph):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.load(cfg, [stop])
    assert len(prepared(cfg)) == 1  # the graphs, whole; nothing of the transform


class Fails(BaseTransform):
    def forward(self, graph):
        raise ValueError("no eigenvalues")


@pytest.mark.parametrize("num_workers", [0, 2])
def test_a_transform_that_fails_names_the_graph(cfg, num_workers) -> None:
    cfg.num_workers = num_workers
    with pytest.raises(DataError, match=r"^graph 0 of mine \(3 nodes\): Fails\(\): no eigenvalues$"):
        data.load(cfg, [Fails()])
    assert len(prepared(cfg)) == 1


def test_workers_prepare_the_same(cfg, make_cfg, table, tmp_path) -> None:
    rows = [f"{'C' * (3 + i % 19)}O,{i}\n" for i in range(300)]
    table.write_text("smiles,y\n" + "".join(rows))
    alone = data.load(cfg, [AddRandomWalkPE(8)]).splits["train"]
    several = make_cfg("csv", "mine", path=table, split_mode="random")
    several.dataset.dir, several.num_workers = str(tmp_path / "elsewhere"), 2
    together = data.load(several, [AddRandomWalkPE(8)]).splits["train"]
    assert len(alone) == len(together) and alone.num_bytes() == together.num_bytes()
    for i in (0, 100, 239):
        assert alone[i].keys() == together[i].keys()
        assert all(torch.equal(alone[i][key], together[i][key]) for key in alone[i].keys())  # noqa: SIM118


def _load_together(cfg, barrier, answers) -> None:
    barrier.wait()
    answers.put(data.load(cfg).splits["train"].targets().flatten().tolist())


class Pairs(Data):
    """A graph whose numbers of pairs count on over a batch."""

    def __inc__(self, key, value, *args, **kwargs):
        return int(self.num_nodes) ** 2 if key == "pair" else super().__inc__(key, value, *args, **kwargs)


class AddPairs(BaseTransform):
    graph_class = Pairs

    def forward(self, graph):
        made = self.graph_class(**graph.to_dict())
        made.pair = torch.arange(graph.num_nodes**2, dtype=torch.int32)
        return made if self.graph_class is Pairs else Pairs(**made.to_dict())


def test_graphs_of_a_class_with_its_own_increments_keep_it(cfg) -> None:
    for _ in range(2):  # prepared, then from the cache
        train = data.load(cfg, [AddPairs()]).splits["train"]
        assert isinstance(train[0], Pairs)
        batch = Batch.from_data_list([train[0], train[1]])
        assert batch.pair.tolist() == list(range(train[0].num_nodes ** 2 + train[1].num_nodes ** 2))


def test_a_class_that_is_not_declared_is_refused(cfg, monkeypatch) -> None:
    monkeypatch.setattr(AddPairs, "graph_class", Data)
    with pytest.raises(TypeError, match="makes graphs of class Pairs, which its graph_class does not say"):
        data.load(cfg, [AddPairs()])


def test_two_processes_may_prepare_at_once(cfg) -> None:
    context = multiprocessing.get_context("fork")
    barrier, answers = context.Barrier(2), context.Queue()
    running = [context.Process(target=_load_together, args=(cfg, barrier, answers)) for _ in range(2)]
    for process in running:
        process.start()
    found = [answers.get(timeout=60) for _ in running]
    for process in running:
        process.join(timeout=60)
    assert [process.exitcode for process in running] == [0, 0]
    assert found[0] == found[1] and len(found[0]) == 8
    assert [path.suffix for path in prepared(cfg)] == [".pt"]


@pytest.mark.parametrize("name", ["../../escape", "a/b", "x" * 900, "..", "naïve set"])
def test_no_name_leaves_the_folder(make_cfg, table, name: str) -> None:
    cfg = make_cfg("csv", name, path=table, split_mode="random")
    assert data.load(cfg).cache_file.parent == Path(cfg.dataset.dir) / "prepared"
    assert len(prepared(cfg)) == 1


def test_subsets_take_the_same_share_of_every_split(make_cfg) -> None:
    cfg = make_cfg("embedded", "wehi-logp", subset=60)
    bundle = data.load(cfg)
    assert {name: len(part) for name, part in bundle.splits.items()} == {"train": 48, "val": 6, "test": 6}
    assert torch.equal(data.load(cfg).splits["val"].targets(), bundle.splits["val"].targets())


def test_no_rate_is_given_where_nothing_was_read(caplog):
    caplog.set_level("INFO", "graphgps_pearl")
    stages._log_rate("read", 0, 0.41, "mine")
    stages._log_rate("read", 500, 0.41, "mine")
    nothing, some = caplog.messages
    assert "per 1000" not in nothing
    assert "0.82 s per 1000 graphs" in some
