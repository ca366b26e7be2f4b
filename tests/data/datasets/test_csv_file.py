import gzip
import math
from pathlib import Path

import pytest
import torch

from graphgps_pearl import data
from graphgps_pearl.data import molecules
from graphgps_pearl.errors import ConfigError, DataError
from graphgps_pearl.inference.molecule_files import read_molecules

SMILES = [
    "CCO",
    "Cc1ccccc1",
    "Oc1ccccc1",
    "CCN",
    "C1CCCCC1",
    "CC1CCCCC1",
    "CO",
    "CCCCCCC",
    "c1ccncc1",
    "OCCO",
]


def write(file: Path, header: str, rows: list[str]) -> Path:
    file.write_text("\n".join([header, *rows]) + "\n")
    return file


@pytest.fixture
def table(tmp_path: Path) -> Path:
    words = ["Train", "train", "training", "train", "valid", "val", "TEST", "test", "train", "train"]
    rows = [f"{s},{i / 2},{i % 2},{word}" for i, (s, word) in enumerate(zip(SMILES, words, strict=True))]
    return write(tmp_path / "mine.csv", "smiles,logS,toxic,set", rows)


def test_a_split_column(make_cfg, table: Path) -> None:
    cfg = make_cfg("csv", "mine", path=table, target_columns=["logS"], split_column="set")
    bundle = data.load(cfg)
    assert bundle.splits["train"].targets().flatten().tolist() == [0, 0.5, 1, 1.5, 4, 4.5]
    assert bundle.splits["val"].targets().flatten().tolist() == [2, 2.5]
    assert bundle.splits["test"].targets().flatten().tolist() == [3, 3.5]
    assert bundle.spec == data.spec(cfg)


def test_every_other_column_is_a_target_if_none_is_named(make_cfg, table: Path, caplog) -> None:
    cfg = make_cfg("csv", "mine", path=table, split_column="set")
    spec = data.spec(cfg)
    assert spec.target_names == ("logS", "toxic") and spec.dim_out == 2
    with caplog.at_level("INFO"):  # a number of the molecule, say, is a target too
        data.load(cfg)
    assert "dataset.target_columns is empty; targets are logS, toxic" in caplog.text
    with pytest.raises(DataError, match=r"column 'set' has 'Train'.*dataset\.target_columns is empty"):
        data.load(make_cfg("csv", "mine", path=table, split_mode="random"))


def test_scaffold_splits_divide_no_scaffold(make_cfg, table: Path) -> None:
    cfg = make_cfg(
        "csv", "mine", path=table, target_columns=["logS"], split_mode="scaffold", split=[0.6, 0.2, 0.2]
    )
    parts = data.load(cfg).splits
    owner: dict[str, str] = {}
    for name, part in parts.items():
        for target in part.targets().flatten().tolist():
            scaffold = molecules.scaffold(molecules.parse(SMILES[int(2 * target)]))
            assert owner.setdefault(scaffold, name) == name
    assert sum(map(len, parts.values())) == 10


def test_size_splits_test_on_the_small(make_cfg, table: Path) -> None:
    cfg = make_cfg(
        "csv", "mine", path=table, target_columns=["logS"], split_mode="size", split=[0.6, 0.2, 0.2]
    )
    parts = data.load(cfg).splits
    assert parts["train"].num_nodes().min() >= parts["test"].num_nodes().max()


def test_missing_labels_are_nan(make_cfg, tmp_path: Path) -> None:
    table = write(tmp_path / "m.csv", "s,a,b", ["CCO,1,", "CCN,NA,0", "CC,1,1", "CCC,0,0", "CO,1,0"])
    cfg = make_cfg("csv", "m", path=table, smiles_column="s", split_mode="random", split=[0.6, 0.2, 0.2])
    cfg.dataset.task_type = "classification_multilabel"
    targets = torch.cat([part.targets() for part in data.load(cfg).splits.values()])
    assert int(targets.isnan().sum()) == 2 and targets.shape == (5, 2)


def test_class_names_are_numbered_and_their_number_known_after_reading(make_cfg, tmp_path: Path) -> None:
    rows = ["CCO,red", "CCN,green", "CC,blue", "CCC,red", "CO,green", "CS,blue"]
    table = write(tmp_path / "c.csv", "smiles,colour", rows)
    cfg = make_cfg("csv", "c", path=table, split_mode="random", split=[0.6, 0.2, 0.2])
    cfg.dataset.task_type = "classification"
    assert data.spec(cfg) is None
    bundle = data.load(cfg)
    assert bundle.spec.dim_out == 3
    assert bundle.splits["train"][0].y.dtype == torch.long and bundle.splits["train"][0].y.shape == (1,)
    targets = torch.cat([part.targets() for part in bundle.splits.values()])
    assert sorted(targets.tolist()) == [0, 0, 1, 1, 2, 2]


def test_gzip_bom_quotes_and_attentivefp(make_cfg, tmp_path: Path) -> None:
    text = '\ufeffsmiles,y\n"CCO",1\n"CCN","2"\nCC,3\nCO,4\n'
    (tmp_path / "q.csv.gz").write_bytes(gzip.compress(text.encode()))
    cfg = make_cfg("csv", "q", path=tmp_path / "q.csv.gz", split_mode="random", features="attentivefp")
    assert data.load(cfg).spec.dim_in == 39


@pytest.mark.parametrize(
    ("header", "settings", "message"),
    [
        (
            "smile,y",
            {},
            r"dataset\.smiles_column: .*m\.csv has no column 'smiles' \(did you mean 'smile'",
        ),
        (
            "smiles,y",
            {"target_columns": ["z"]},
            r"dataset\.target_columns: .* no column 'z'; its .* 'y'",
        ),
        ("smiles,y", {"split_mode": "standard"}, r"dataset\.split_column: is empty"),
        (
            "smiles,y",
            {"split_mode": "standard", "split_column": "y"},
            "line 2: column 'y' has '1', which",
        ),
        ("smiles", {}, "has no column but 'smiles'"),
        ("smiles,y", {"path": ""}, r"dataset\.path: is empty; name the CSV file"),
        ("smiles,y", {"path": "/nowhere.csv"}, r"dataset\.path: /nowhere\.csv is not a file"),
        (
            "smiles,a,b",
            {"task_type": "classification_binary"},
            r"dataset\.target_columns: .* wants one column, not 2",
        ),
    ],
)
def test_columns_and_settings_that_are_missing_are_said(
    make_cfg, tmp_path, header, settings, message
) -> None:
    rows = [",".join(row[: header.count(",") + 1]) for row in (("CCO", "1", "1"), ("CCN", "0", "1"))]
    table = write(tmp_path / "m.csv", header, rows)
    cfg = make_cfg("csv", "m", **{"path": table, "split_mode": "random"} | settings)
    if settings.get("split_column"):
        cfg.dataset.target_columns = ["smiles"]
    with pytest.raises((ConfigError, DataError), match=message) as caught:
        data.load(cfg)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00smiles", b"smiles,y\n", b'smiles,y\n"C,1\n' + b"\x00"]
)
def test_files_that_are_no_csv_are_one_line(make_cfg, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.csv").write_bytes(content)
    cfg = make_cfg("csv", "m", path=tmp_path / "m.csv", target_columns=["y"], split_mode="random")
    with pytest.raises(DataError, match=r"m\.csv") as caught:
        data.load(cfg)
    assert len(str(caught.value).splitlines()) == 1


def test_a_label_of_a_binary_task_is_zero_or_one(make_cfg, tmp_path: Path) -> None:
    table = write(tmp_path / "b.csv", "smiles,y", ["CCO,1", "CCN,0", "CC,2", "CO,1", "CS,0"])
    cfg = make_cfg("csv", "b", path=table, split_mode="random", skip_bad_rows=True)
    cfg.dataset.task_type = "classification_binary"
    bundle = data.load(cfg)
    assert [str(row.reason) for row in bundle.skipped] == [
        "column 'y' has '2', which is not 0 or 1, nor yes or no"
    ]
    assert all(not math.isnan(value) for value in bundle.splits["train"].targets().flatten().tolist())


def test_numbers_are_not_taken_for_classes(make_cfg, tmp_path: Path) -> None:
    table = write(tmp_path / "r.csv", "smiles,y", [f"{'C' * (i + 1)},{i / 7}" for i in range(60)])
    cfg = make_cfg("csv", "r", path=table, split_mode="random")
    cfg.dataset.task_type = "classification"
    with pytest.raises(DataError, match=r"60 different values, too many for classes; is .* regression"):
        data.load(cfg)


def test_cells_that_no_column_has_are_a_bad_row(make_cfg, tmp_path: Path) -> None:
    rows = [f"train,{s},{i}" for i, s in enumerate(SMILES)]
    rows[3] = "train,CCN,1,5"  # a decimal comma
    rows[4] += ",,"  # empty cells of a spreadsheet
    file = write(tmp_path / "mine.csv", "set,smiles,logS", rows)
    cfg = make_cfg("csv", "mine", path=file, target_columns=["logS"], split_mode="random")
    with pytest.raises(DataError, match=r"line 5 of .*: has 4 cells, the header has 3"):
        data.load(cfg)


def test_blank_lines_before_the_header_count_as_lines(make_cfg, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("\n  \nsmiles;t\nCCO;1\nCCC;x\nCCN;2\n")
    cfg = make_cfg("csv", "mine", path=str(file), target_columns=["t"], split_mode="random")
    with pytest.raises(DataError, match=r"line 5"):
        data.load(cfg)


def test_a_row_with_too_few_cells_is_bad_though_a_target_is_among_them(make_cfg, tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"  # line 3 lacks its name: its y is where another row has z
    rows = "".join(f"{'C' * (i + 3)},a,1.5,9\n" for i in range(8))
    file.write_text(f"smiles,name,y,z\nCCO,a,1.5,9\nCC,1.5,9\n{rows}")
    with pytest.raises(DataError, match=r"line 3 of .*: has 3 cells, the header has 4"):
        data.load(make_cfg("csv", "mine", path=file, target_columns=["y"], split_mode="random"))


def test_where_every_row_is_bad_the_first_is_shown(make_cfg, tmp_path: Path) -> None:
    empty = write(tmp_path / "mine.csv", "smiles,logS,,", [f"{s},1" for s in SMILES])  # names of no column
    settings = {"target_columns": ["logS"], "split_mode": "random"}
    assert len(data.load(make_cfg("csv", "mine", path=empty, **settings)).skipped) == 0
    file = write(tmp_path / "mine.csv", "smiles,logS", [f"{s},1,5" for s in SMILES])
    with pytest.raises(DataError, match=r"no usable rows \(line 2 has 3 cells, the header has 2\)"):
        data.load(make_cfg("csv", "mine", path=file, split_mode="random"))


def test_a_column_that_is_there_twice(make_cfg, tmp_path: Path) -> None:
    file = write(tmp_path / "mine.csv", "smiles,y,y", [f"{s},1,2" for s in SMILES])
    for columns in ([], ["y"]):
        cfg = make_cfg("csv", "mine", path=file, target_columns=columns, split_mode="random")
        with pytest.raises(DataError, match=r"dataset.target_columns: .*mine.csv has 2 columns 'y'"):
            data.load(cfg)


@pytest.mark.parametrize(
    ("name", "separator"), [("m.csv", ";"), ("m.csv", "\t"), ("m.tsv", "\t"), ("m.tsv", ","), ("m.txt", ";")]
)
@pytest.mark.parametrize("header", ["smiles", "SMILES", "Smiles"])
def test_separators_and_spellings_of_spreadsheets(
    make_cfg, tmp_path: Path, name: str, separator: str, header: str
) -> None:
    """The same table for training and for prediction, whatever separates its cells."""
    rows = [f"{s}{separator}{i / 2}" for i, s in enumerate(SMILES)]
    file = write(tmp_path / name, f"{header}{separator}logS", rows)
    spec = data.spec(make_cfg("csv", "m", path=file, split_mode="random"))
    assert spec.target_names == ("logS",)
    cfg = make_cfg("csv", "m", path=file, split_mode="random")
    assert sum(map(len, data.load(cfg).splits.values())) == len(SMILES)
    table = read_molecules(str(file))
    assert table.smiles == SMILES and table.columns == [header, "logS"]


def test_a_wrong_separator_is_named(make_cfg, tmp_path: Path) -> None:
    file = write(tmp_path / "m.csv", "smiles|logS", [f"{s}|1" for s in SMILES])
    for read in (
        lambda: data.load(make_cfg("csv", "m", path=file, split_mode="random")),
        lambda: read_molecules(str(file)),
    ):
        with pytest.raises(DataError, match=r"m.csv .*'smiles\|logS' is one cell.* semicolon .* not by '\|'"):
            read()


def test_a_decimal_comma_is_named(make_cfg, tmp_path: Path) -> None:
    file = write(tmp_path / "m.csv", "smiles;logS", [f"{s};1,5" for s in SMILES])
    with pytest.raises(DataError, match=r"column 'logS' has '1,5', which is not a number; .*point"):
        data.load(make_cfg("csv", "m", path=file, split_mode="random"))


@pytest.mark.parametrize("yes, no", [("yes", "No"), ("TRUE", "false"), ("active", "inactive"), ("1.0", "0")])
def test_words_for_binary_labels(make_cfg, tmp_path: Path, yes: str, no: str) -> None:
    file = write(tmp_path / "b.csv", "smiles,y", [f"{s},{(no, yes)[i % 2]}" for i, s in enumerate(SMILES)])
    cfg = make_cfg("csv", "b", path=file, split_mode="random", task_type="classification_binary")
    targets = torch.cat([part.targets() for part in data.load(cfg).splits.values()])
    assert sorted(targets.flatten().tolist()) == [0.0] * 5 + [1.0] * 5


def test_targets_are_standardised_by_the_training_split(make_cfg, table: Path) -> None:
    settings = {"path": table, "target_columns": ["logS", "toxic"], "split_column": "set"}
    plain = data.load(make_cfg("csv", "mine", **settings))
    bundle = data.load(make_cfg("csv", "mine", **settings, standardise=True))
    train = bundle.splits["train"].targets()
    torch.testing.assert_close(train.mean(dim=0), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(train.std(dim=0, correction=0), torch.ones(2))
    for split, graphs in bundle.splits.items():
        wanted = plain.splits[split].targets()
        torch.testing.assert_close(bundle.in_units(graphs.targets()), wanted)
        torch.testing.assert_close(bundle.in_units(graphs[0].y), wanted[:1])
    assert plain.moments is None and plain.target_mean is None


def test_a_constant_target_and_missing_labels_are_standardised(make_cfg, tmp_path: Path) -> None:
    rows = [f"{s},5,{'' if i % 2 else i}" for i, s in enumerate(SMILES)]
    file = write(tmp_path / "c.csv", "smiles,same,holes", rows)
    cfg = make_cfg("csv", "c", path=file, split_mode="random", standardise=True)
    bundle = data.load(cfg)
    same, holes = bundle.splits["train"].targets().unbind(dim=1)
    assert not same.any() and bundle.target_std is not None and bundle.target_std[0] == 1
    assert holes.isnan().any() and holes.nanmean().abs() < 1e-6


@pytest.mark.parametrize("closed_later", [False, True])
def test_a_quote_that_is_not_closed_swallows_no_rows(make_cfg, tmp_path: Path, closed_later: bool) -> None:
    names = ["a"] * 10
    names[3] = '"x'
    if closed_later:
        names[7] = '"y'
    rows = [f"{smiles},{i},{name}" for i, (smiles, name) in enumerate(zip(SMILES, names, strict=True))]
    table = write(tmp_path / "q.csv", "smiles,y,name", rows)
    cfg = make_cfg("csv", "q", path=table, split_mode="random", target_columns=["y"])
    with pytest.raises(DataError, match=r"q\.csv: line 5: .*quote"):
        data.load(cfg)
    with pytest.raises(DataError, match=r"q\.csv: line 5: .*quote"):
        read_molecules(str(table))


def test_a_date_is_no_yes_or_no(make_cfg, tmp_path: Path) -> None:
    table = write(tmp_path / "b.csv", "smiles,y", ["CCO,2020.01.02", "CCN,0", "CC,1", "CO,1.0", "CS,0."])
    cfg = make_cfg("csv", "b", path=table, split_mode="random")
    cfg.dataset.task_type = "classification_binary"
    with pytest.raises(DataError, match=r"1 row of b .* line 2 .*2020\.01\.02"):
        data.load(cfg)
