import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers.public_files import write_zinc
from torch_geometric.datasets import ZINC

from graphgps_pearl import data
from graphgps_pearl.data import molecules
from graphgps_pearl.data.csv_table import read_columns
from graphgps_pearl.errors import DataError


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    write_zinc(tmp_path / "ZINC" / "raw", {"train": 8, "val": 2, "test": 2})
    return tmp_path / "ZINC"


@pytest.mark.parametrize("name", ["subset", "full"])
def test_the_graphs_are_those_of_pygs_own_reader(make_cfg, raw: Path, name: str) -> None:
    bundle = data.load(make_cfg("PyG-ZINC", name, path=raw, check_totals=False))
    for split in ("train", "val", "test"):
        theirs = ZINC(str(raw), subset=name == "subset", split=split)
        assert len(bundle.splits[split]) == len(theirs)
        for ours, other in zip(bundle.splits[split], theirs, strict=True):
            for key in ("x", "edge_index", "edge_attr"):
                assert torch.equal(ours[key], other[key]), key
            assert torch.equal(ours.y, other.y.view(1, 1))


def test_spec_is_known_without_any_file(make_cfg) -> None:
    spec = data.spec(make_cfg("PyG-ZINC", "subset"))
    assert (spec.dim_in, spec.edge_dim, spec.dim_out) == (1, 1, 1)
    assert spec.splits == ("train", "val", "test") and spec.select_split == "val"


def test_files_in_the_dataset_folder_are_found(make_cfg, raw: Path) -> None:
    cfg = make_cfg("PyG-ZINC", "subset", check_totals=False)
    Path(cfg.dataset.dir).mkdir()
    raw.rename(Path(cfg.dataset.dir) / "ZINC")
    assert len(data.load(cfg).splits["train"]) == 8


def test_other_totals_than_the_public_ones_are_an_error(make_cfg, raw: Path) -> None:
    with pytest.raises(DataError, match=r"ZINC-subset: 8 graphs in train, .* has 10,000; .*check_totals"):
        data.load(make_cfg("PyG-ZINC", "subset", path=raw))


def test_a_missing_file_says_what_is_wanted(make_cfg, raw: Path) -> None:
    (raw / "raw" / "val.index").unlink()
    with pytest.raises(DataError, match=r"dataset\.path: .*ZINC does not have the files; wanted: train"):
        data.load(make_cfg("PyG-ZINC", "subset", path=raw))


def test_without_files_it_downloads_and_says_so_when_it_cannot(make_cfg, monkeypatch) -> None:
    monkeypatch.setattr("graphgps_pearl.data.datasets.zinc._URL", "http://127.0.0.1:9/molecules.zip")
    with pytest.raises(DataError, match=r"molecules\.zip: cannot be reached .*; download it by hand to"):
        data.load(make_cfg("PyG-ZINC", "subset"))


def molecule(atoms: int, bonds: int, target: float = 0.5) -> dict[str, torch.Tensor]:
    numbers = {"atom_type": torch.zeros(atoms), "bond_type": torch.zeros(bonds, bonds)}
    return numbers | {"logP_SA_cycle_normalized": torch.tensor([target], dtype=torch.double)}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("train.index", "1,x,3\n", r"train\.index: not a list of numbers"),
        ("train.index", "1,2,99\n", r"train\.index: names molecules"),
        ("val.pickle", pickle.dumps({"a": 1}), r"val\.pickle: not a list of molecules"),
        ("val.pickle", b"cut off", r"val\.pickle: no pickle of a dataset"),
        ("test.pickle", pickle.dumps([1] * 9), r"molecule 1 \(test\.pickle\) of .*: not a molecule with"),
        ("test.pickle", pickle.dumps([molecule(2, 3)] * 9), r"molecule 1 .*do not fit together"),
        ("test.pickle", pickle.dumps([molecule(2, 2, 1e300)] * 9), r"molecule 1 .*do not fit together"),
    ],
)
def test_damaged_files_are_named(make_cfg, raw: Path, file: str, content, message: str) -> None:
    target = raw / "raw" / file
    target.write_text(content) if isinstance(content, str) else target.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        data.load(make_cfg("PyG-ZINC", "subset", path=raw, check_totals=False))
    assert len(str(caught.value).splitlines()) == 1


@pytest.fixture(scope="module")
def unpacked(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("unpacked")
    subprocess.run([sys.executable, shared_data / "unpack.py", target], check=True)
    return target


@pytest.mark.slow
@pytest.mark.realdata
def test_the_benchmark_itself(make_cfg, unpacked: Path) -> None:
    bundle = data.load(make_cfg("PyG-ZINC", "subset", path=unpacked / "ZINC"))
    train = bundle.splits["train"]
    sizes = {name: len(part) for name, part in bundle.splits.items()}
    assert sizes == {"train": 10_000, "val": 1000, "test": 1000}
    assert train.num_nodes().float().mean().item() == pytest.approx(23.166, abs=5e-4)
    assert train.num_edges().float().mean().item() == pytest.approx(49.856, abs=5e-4)
    assert train.targets().mean().item() == pytest.approx(0.0153, abs=5e-5)
    assert train.targets().std().item() == pytest.approx(2.0109, abs=5e-5)
    first = train[0]
    assert (first.num_nodes, first.num_edges) == (29, 64)
    assert first.y.item() == pytest.approx(0.8350, abs=5e-5)


@pytest.mark.realdata
def test_penalised_logp_reproduces_zincs_targets(shared_data: Path) -> None:
    import numpy as np

    table = read_columns(shared_data / "zinc12k" / "test_smiles.csv.gz", {"smiles": "column"})
    targets = np.load(shared_data / "zinc12k" / "test.npz")["y"]
    ours = [molecules.penalised_logp(molecules.parse(row[0])) for row in table.rows]
    assert np.median(np.abs(np.asarray(ours) - targets)) < 0.0025
