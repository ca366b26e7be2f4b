import csv
import logging
import multiprocessing
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddRandomWalkPE, BaseTransform

from graphgps_pearl import data
from graphgps_pearl.data import cache, prepare, stages
from graphgps_pearl.errors import ConfigError, DataError

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CCCCC1", "CCCl", "CO", "CCCC", "C#N", "OCCO"]


class Scale(BaseTransform):
    """Adds a column of its factor; counts how often it runs."""

    runs = 0

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def forward(self, graph):
        Scale.runs += 1
        graph.pe = torch.full((graph.num_nodes, 1), self.factor)
        return graph

    def __repr__(self) -> str:
        return f"Scale(factor={self.factor})"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    file = tmp_path / "mine.csv"
    file.write_text("smiles,y\n" + "".join(f"{smiles},{i}\n" for i, smiles in enumerate(SMILES)))
    return file


@pytest.fixture
def cfg(make_cfg, table: Path):
    return make_cfg("csv", "mine", path=table, split_mode="random")


def prepared(cfg) -> list[Path]:
    return sorted((Path(cfg.dataset.dir) / "prepared").iterdir())


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


def test_a_cache_that_is_damaged_or_hostile_is_made_again(cfg, tmp_path) -> None:
    file = data.load(cfg).cache_file
    whole = file.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"\x80\x04."):
        file.write_bytes(content)
        assert len(data.load(cfg).splits["train"]) == 8
    cache.save({"graphs": {}}, file)
    assert len(data.load(cfg).splits["train"]) == 8


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


@pytest.fixture
def bad_table(tmp_path: Path) -> Path:
    file = tmp_path / "bad.csv"
    bad = ["C1CC,2", "CCN,abc", ",3", "CO,inf", "CC"]
    rows = ["CCO,1", *bad, "CCC,5", "CCCC,6", "CCl,7", "", "CBr,8", "CS,9"]
    file.write_text("smiles,y\n" + "\n".join(rows) + "\n")
    return file


def test_bad_rows_stop_the_run_with_one_line_and_a_list(make_cfg, bad_table) -> None:
    cfg = make_cfg("csv", "bad", path=bad_table, split_mode="random")
    with pytest.raises(DataError) as caught:
        data.load(cfg)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(
        f"5 rows of bad cannot be used, the first is line 3 of {bad_table}: the SMILES 'C1CC' does not parse"
    )
    assert "dataset.skip_bad_rows True" in message
    (listing,) = (path for path in prepared(cfg) if path.suffix == ".csv")
    assert str(listing) in message
    with listing.open(newline="") as file:
        found = {row["row"]: row["reason"] for row in csv.DictReader(file)}
    assert found == {
        "line 3": "the SMILES 'C1CC' does not parse",
        "line 4": "column 'y' has 'abc', which is not a number",
        "line 5": "the SMILES is empty",
        "line 6": "column 'y' has 'inf', which is not finite",
        "line 7": "has 1 cells, the header has 2",
    }


def test_bad_rows_are_skipped_only_when_asked_and_not_forgotten(make_cfg, bad_table) -> None:
    cfg = make_cfg("csv", "bad", path=bad_table, split_mode="random", skip_bad_rows=True)
    bundle = data.load(cfg)
    assert sum(map(len, bundle.splits.values())) == 6 and len(bundle.skipped) == 5
    assert len(data.load(cfg).skipped) == 5
    cfg.dataset.skip_bad_rows = False
    with pytest.raises(DataError, match="5 rows of bad cannot be used"):
        data.load(cfg)


def test_split_modes_of_any_dataset(make_cfg) -> None:
    cfg = make_cfg("embedded", "wehi-logp", subset=30, split_mode="cv-kfold-5")
    tests = []
    for fold in range(5):
        cfg.dataset.split_index = fold
        bundle = data.load(cfg)
        assert {name: len(part) for name, part in bundle.splits.items()} == {"train": 18, "val": 6, "test": 6}
        tests += bundle.splits["test"].targets().flatten().tolist()
    assert len(set(tests)) == 30
    cfg.dataset.split_mode, cfg.seed = "random", 1
    with pytest.raises(ConfigError, match=r"dataset.split_index: 4, but dataset.split_mode random has one"):
        data.load(cfg)
    cfg.dataset.split_index = 0
    one = data.load(cfg).splits["test"].targets()
    cfg.seed = 2
    assert not torch.equal(one, data.load(cfg).splits["test"].targets())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "node"}, "dataset.task: 'node' does not fit wehi-logp; set it to graph"),
        ({"task_type": "classification"}, "dataset.task_type: 'class.*' does not fit .* to regression"),
        ({"split_mode": "scaffold"}, "dataset.split_mode: 'scaffold' is not known here"),
        ({"select_split": "ood_val"}, "dataset.select_split: 'ood_val' is no split of wehi-logp"),
        ({"features": "attentivefp"}, "dataset.features: 'attentivefp' is not offered .*; use ogb"),
        ({"name": "wehi-logq"}, r"dataset.name: 'wehi-logq' is not known .*did you mean wehi-logp\?"),
        ({"format": "PyG-ZINK"}, r"dataset.format: 'PyG-ZINK' is not known \(did you mean PyG-ZINC\?\)"),
    ],
)
def test_configs_that_contradict_the_dataset_are_found_without_data(make_cfg, settings, message) -> None:
    cfg = make_cfg("embedded", "wehi-logp")
    for key, value in settings.items():
        cfg.dataset[key] = value
    with pytest.raises(ConfigError, match=message):
        data.spec(cfg)
    assert not Path(cfg.dataset.dir).exists()


def test_the_selection_split_is_switchable(make_cfg) -> None:
    cfg = make_cfg("embedded", "wehi-logp", select_split="test")
    assert data.spec(cfg).select_split == "test"


def test_the_identity_is_that_of_the_content(cfg, make_cfg, table: Path, tmp_path: Path) -> None:
    first = data.load(cfg).identity
    assert data.load(cfg).identity == data.load(cfg, [Scale(2.0)]).identity == first
    moved = tmp_path / "elsewhere.csv"
    moved.write_text(table.read_text() + "not a molecule,3\n")
    words = {"split_mode": "random", "skip_bad_rows": True, "dir": tmp_path / "other"}
    assert data.load(make_cfg("csv", "mine", path=moved, **words)).identity == first
    table.write_text(table.read_text().replace("CCO,0", "CCO,0.5"))
    assert data.load(cfg).identity != first


def test_a_run_in_folds_depends_on_what_made_them(make_cfg, monkeypatch) -> None:
    def identity(mode: str) -> str:
        return data.load(make_cfg("embedded", "wehi-logp", subset=30, split_mode=mode)).identity

    random, folds = identity("random"), identity("cv-kfold-5")
    monkeypatch.setattr(prepare.splits, "FOLDS", "another library")
    assert identity("random") == random
    assert identity("cv-kfold-5") != folds


def test_damaged_caches_are_prepared_again_and_the_data_is_the_same(cfg, caplog) -> None:
    first = data.load(cfg, [Scale(2.0)])
    for file in prepared(cfg):
        content = bytearray(file.read_bytes())
        at = content.index(b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09")  # the labels
        content[at + 3] ^= 1
        file.write_bytes(content)
    caplog.clear()
    again = data.load(cfg, [Scale(2.0)])
    assert sum("preparing again" in record.getMessage() for record in caplog.records) == 2
    assert again.identity == first.identity and again.prepare_seconds > 0
    assert torch.equal(again.splits["train"].targets(), first.splits["train"].targets())


def test_no_rate_is_given_where_nothing_was_read(caplog):
    caplog.set_level("INFO", "graphgps_pearl")
    stages._log_rate("read", 0, 0.41, "mine")
    stages._log_rate("read", 500, 0.41, "mine")
    nothing, some = caplog.messages
    assert "per 1000" not in nothing
    assert "0.82 s per 1000 graphs" in some
