import csv
from pathlib import Path

import pytest
import torch
from helpers.prepared import Scale, prepared

from graphgps_pearl import data
from graphgps_pearl.data import prepare
from graphgps_pearl.errors import ConfigError, DataError


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
