import csv
import gzip
import hashlib
import io
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from graphgps_pearl import data
from graphgps_pearl.data.datasets import peptides
from graphgps_pearl.data.datasets.peptides import STRUCT_TARGETS
from graphgps_pearl.errors import DataError

SMILES = [
    "NCC(=O)O",
    "C[C@H](N)C(=O)O",
    "NCC(=O)NCC(=O)O",
    "CC(C)C[C@H](N)C(=O)O",
    "N[C@@H](CO)C(=O)O",
    "CSCC[C@H](N)C(=O)O",
]
FUNC_HEADER = ["", "smiles", "peptide_seq", "labels", "identifier"]
SPLITS = {"train": np.array([5, 1, 0, 3]), "val": np.array([2]), "test": np.array([4])}


def write_csv(file: Path, header: list[str], rows: list[list[object]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([header, *rows])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.getvalue().encode()))


def write_split(file: Path) -> None:
    file.write_bytes(pickle.dumps(SPLITS))


def func_rows(labels: list[list[int]]) -> list[list[object]]:
    return [[i, SMILES[i], "AG", str(row), i] for i, row in enumerate(labels)]


@pytest.fixture
def struct(tmp_path: Path) -> Path:
    """Upstream's layout: the CSV in raw/, the split beside it; unnormalised targets, other columns around."""
    folder = tmp_path / "peptides-structural"
    values = np.random.default_rng(0).normal(5, 3, (len(SMILES), 11))
    header = ["", "peptide_seq", *STRUCT_TARGETS[::-1], "smiles"]
    rows = [[i, "AG", *row[::-1], smiles] for i, (row, smiles) in enumerate(zip(values, SMILES, strict=True))]
    write_csv(folder / "raw" / "peptide_structure_dataset.csv.gz", header, rows)
    write_split(folder / "splits_random_stratified_peptide_structure.pickle")
    return folder


@pytest.fixture
def func(tmp_path: Path) -> Path:
    folder = tmp_path / "flat"
    labels = np.random.default_rng(1).integers(0, 2, (len(SMILES), 10)).tolist()
    write_csv(folder / "peptide_multi_class_dataset.csv.gz", FUNC_HEADER, func_rows(labels))
    write_split(folder / "splits_random_stratified_peptide.pickle")
    (folder / "labels.json").write_text(json.dumps(labels))
    return folder


def test_struct_targets_are_standardised_over_all_rows(make_cfg, struct: Path) -> None:
    bundle = data.load(make_cfg("OGB", "peptides-structural", path=struct, check_totals=False))
    assert {name: len(part) for name, part in bundle.splits.items()} == {"train": 4, "val": 1, "test": 1}
    everything = torch.cat([part.targets() for part in bundle.splits.values()])
    assert torch.allclose(everything.mean(0), torch.zeros(11), atol=1e-6)
    assert torch.allclose(everything.std(0), torch.ones(11), atol=1e-6)
    values = torch.from_numpy(np.random.default_rng(0).normal(5, 3, (len(SMILES), 11))).float()
    restored = bundle.splits["train"].targets() * bundle.target_std + bundle.target_mean
    assert torch.allclose(restored, values[SPLITS["train"]], atol=1e-5)  # columns by name, rows by the split
    assert bundle.spec.target_names == STRUCT_TARGETS
    assert bundle.splits["test"][0].x.shape == (7, 9)


def test_targets_that_are_standardised_stay(make_cfg, struct: Path) -> None:
    values = np.random.default_rng(0).normal(5, 3, (len(SMILES), 11))
    values = (values - values.mean(0)) / values.std(0, ddof=1)
    (struct / "raw" / "peptide_structure_dataset.csv.gz").unlink()
    rows = [[smiles, *row] for smiles, row in zip(SMILES, values.tolist(), strict=True)]
    target = struct / "raw" / "peptide_structure_normalized_dataset.csv.gz"
    write_csv(target, ["smiles", *STRUCT_TARGETS], rows)
    bundle = data.load(make_cfg("OGB", "peptides-structural", path=struct, check_totals=False))
    assert bundle.target_mean is None and bundle.target_std is None
    assert torch.allclose(bundle.splits["val"].targets()[0].double(), torch.from_numpy(values[2]), atol=1e-6)


def test_func_labels_are_lists_written_as_text(make_cfg, func: Path) -> None:
    cfg = make_cfg("OGB", "peptides-functional", path=func, check_totals=False)
    cfg.dataset.task_type = "classification_multilabel"
    bundle = data.load(cfg)
    labels = torch.tensor(json.loads((func / "labels.json").read_text())).float()
    assert torch.equal(bundle.splits["train"].targets(), labels[SPLITS["train"]])
    assert bundle.spec.dim_out == 10 and bundle.spec.target_names[4] == "antimicrobial"


def test_both_spellings_read_both_forms(make_cfg, func: Path, tmp_path: Path) -> None:
    def load(data_format: str, name: str, path: Path):
        cfg = make_cfg(data_format, name, path=path, check_totals=False)
        cfg.dataset.task_type = "classification_multilabel"
        return data.load(cfg).splits

    from_csv = load("PyG-LRGB", "Peptides-func", func)
    pyg = tmp_path / "pyg" / "raw"
    pyg.mkdir(parents=True)
    for split, graphs in from_csv.items():
        torch.save([(g.x, g.edge_attr, g.edge_index, g.y) for g in graphs], pyg / f"{split}.pt")
    for data_format, name in (("PyG-LRGB", "peptides-func"), ("OGB", "peptides-functional")):
        from_tensors = load(data_format, name, pyg.parent)
        for split, graphs in from_csv.items():
            for ours, theirs in zip(graphs, from_tensors[split], strict=True):
                for key in ("x", "edge_index", "edge_attr", "y"):
                    assert torch.equal(ours[key], theirs[key]), key


def test_other_files_than_the_public_ones_are_an_error(make_cfg, struct: Path) -> None:
    with pytest.raises(DataError, match=r"structure_dataset\.csv\.gz: has checksum .*9786061a.*check_totals"):
        data.load(make_cfg("OGB", "peptides-structural", path=struct))


def test_public_checksums_but_another_number_of_atoms_is_an_error(make_cfg, func: Path, monkeypatch) -> None:
    marks = {file.name: hashlib.md5(file.read_bytes()).hexdigest() for file in func.iterdir()}
    name = "peptide_multi_class_dataset.csv.gz"
    monkeypatch.setitem(peptides._FUNC.csv_md5, name, marks[name])
    monkeypatch.setattr(peptides, "_SPLIT_MD5", marks["splits_random_stratified_peptide.pickle"])
    cfg = make_cfg("OGB", "peptides-functional", path=func)
    cfg.dataset.task_type = "classification_multilabel"
    with pytest.raises(DataError, match="Peptides-func: 4 graphs in train, the public dataset has 10,873"):
        data.load(cfg)


def test_rows_that_cannot_be_used_do_not_shift_the_others(make_cfg, func: Path) -> None:
    labels = json.loads((func / "labels.json").read_text())
    rows = func_rows(labels)
    rows[0][3], rows[1] = "[0, 1]", ["cut"]
    write_csv(func / "peptide_multi_class_dataset.csv.gz", FUNC_HEADER, rows)
    cfg = make_cfg("OGB", "peptides-functional", path=func, check_totals=False, skip_bad_rows=True)
    cfg.dataset.task_type = "classification_multilabel"
    bundle = data.load(cfg)
    assert [(row.row, row.reason) for row in bundle.skipped] == [
        ("line 2", "labels '[0, 1]' are not a list of 10 zeros and ones"),
        ("line 3", "has 1 cells, the header has 5"),
    ]
    assert torch.equal(bundle.splits["train"].targets(), torch.tensor([labels[5], labels[3]]).float())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("cut", r"dataset\.csv\.gz: is damaged or cut off"),
        ("column", r"has no column 'labels' \(did you mean 'label'\?\); its columns are"),
        ("split", "names rows twice or beyond the 6 of"),
        ("payload", "it asks for posix.mkdir, which no dataset needs, and was not run"),
    ],
)
def test_damaged_files_are_named(make_cfg, func: Path, damage: str, message: str) -> None:
    table = func / "peptide_multi_class_dataset.csv.gz"
    split = func / "splits_random_stratified_peptide.pickle"
    if damage == "cut":
        table.write_bytes(table.read_bytes()[:-20])
    elif damage == "column":
        write_csv(table, ["smiles", "label"], [["C", "[]"]])
    elif damage == "split":
        split.write_bytes(pickle.dumps({**SPLITS, "test": np.array([6])}))
    else:
        split.write_bytes(b"cposix\nmkdir\n(S'ran'\ntR.".replace(b"(S'ran'\nt", b"\x8c\x03ran\x85"))
    cfg = make_cfg("OGB", "peptides-functional", path=func, check_totals=False)
    cfg.dataset.task_type = "classification_multilabel"
    with pytest.raises(DataError, match=message) as caught:
        data.load(cfg)
    assert len(str(caught.value).splitlines()) == 1 and not Path("ran").exists()


def test_without_files_and_without_network_it_says_what_to_put_where(make_cfg) -> None:
    with pytest.raises(DataError, match=r"dataset\.path: /nowhere does not exist; wanted: peptide_struct"):
        data.load(make_cfg("OGB", "peptides-structural", path="/nowhere"))


def layout_from_sample(shared_data: Path, folder: Path) -> None:
    """An LRGB-layout folder made from the recomputed sample: real peptides, not the official targets."""
    (folder / "raw").mkdir(parents=True)
    sample = (shared_data / "peptides" / "struct_recomputed_sample.csv.gz").read_bytes()
    (folder / "raw" / "peptide_structure_dataset.csv.gz").write_bytes(sample)
    order = np.random.default_rng(0).permutation(404)
    splits = {"train": order[:324], "val": order[324:364], "test": order[364:]}
    (folder / "splits_random_stratified_peptide_structure.pickle").write_bytes(pickle.dumps(splits))


@pytest.mark.realdata
def test_an_lrgb_layout_made_from_the_recomputed_sample(make_cfg, shared_data: Path, tmp_path: Path) -> None:
    layout_from_sample(shared_data, tmp_path / "lrgb")
    bundle = data.load(make_cfg("OGB", "peptides-structural", path=tmp_path / "lrgb", check_totals=False))
    assert {name: len(part) for name, part in bundle.splits.items()} == {"train": 324, "val": 40, "test": 40}
    assert max(int(part.num_nodes().max()) for part in bundle.splits.values()) <= 90
    everything = torch.cat([part.targets() for part in bundle.splits.values()])
    assert torch.allclose(everything.std(0), torch.ones(11), atol=1e-5)
    assert bundle.target_mean[0] > 5  # Inertia_mass_a in its own units


@pytest.mark.realdata
def test_the_public_split_file_is_read(shared_data: Path) -> None:
    from graphgps_pearl.data.pickles import read_index_lists

    folder = shared_data / "peptides"
    ours = read_index_lists(folder / "splits_random_stratified_peptide.pickle", ("train", "val", "test"))
    plain = np.load(folder / "splits.npz")
    assert {name: len(part) for name, part in ours.items()} == {"train": 10_873, "val": 2331, "test": 2331}
    for name in plain.files:
        assert plain[name].tolist() == ours[name]


@pytest.mark.realdata
def test_a_share_of_peptides_func(make_cfg, shared_data: Path) -> None:
    cfg = make_cfg("OGB", "peptides-functional", path=shared_data / "peptides", subset=300)
    cfg.dataset.task_type = "classification_multilabel"
    bundle = data.load(cfg)
    assert {name: len(part) for name, part in bundle.splits.items()} == {"train": 210, "val": 45, "test": 45}


@pytest.mark.slow
@pytest.mark.realdata
def test_all_of_peptides_func_has_the_published_totals(make_cfg, shared_data: Path) -> None:
    cfg = make_cfg("OGB", "peptides-functional", path=shared_data / "peptides")
    cfg.dataset.task_type = "classification_multilabel"
    bundle = data.load(cfg)  # the totals of graphs, atoms and bonds are checked on load
    assert sum(int(part.num_nodes().sum()) for part in bundle.splits.values()) == 2_344_859
    assert sum(int(part.num_edges().sum()) for part in bundle.splits.values()) == 4_773_974
