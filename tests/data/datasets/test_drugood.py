import gzip
import json
from pathlib import Path

import pytest
import torch

from graphgps_pearl import data
from graphgps_pearl.data.datasets.drugood import SPLITS
from graphgps_pearl.errors import DataError

NAME = "lbap_core_ic50_assay"
SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CCCCC1"]


def content() -> dict:
    def row(smiles: str, label: int) -> dict:
        return {"smiles": smiles, "reg_label": 4.4, "assay_id": 1, "cls_label": label, "domain_id": 2}

    rows = {split: [row(s, (i + k) % 2) for i, s in enumerate(SMILES)] for k, split in enumerate(SPLITS)}
    return {"cfg": {}, "split": rows, "statistics": {}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "DrugOOD"
    target.mkdir()
    (target / f"{NAME}.json").write_text(json.dumps(content()))
    return target


def drugood_cfg(make_cfg, **dataset):
    cfg = make_cfg("DrugOOD", NAME, **dataset)
    cfg.dataset.task_type = dataset.get("task_type", "classification_binary")
    return cfg


def test_five_splits_selected_on_ood_val(make_cfg, folder: Path) -> None:
    cfg = drugood_cfg(make_cfg, path=folder)
    spec = data.spec(cfg)
    assert spec.splits == SPLITS and spec.select_split == "ood_val"
    assert (spec.dim_in, spec.edge_dim, spec.dim_out) == (39, 10, 1)
    bundle = data.load(cfg)
    assert tuple(bundle.splits) == SPLITS
    assert bundle.splits["train"].targets().flatten().tolist() == [0, 1, 0, 1, 0]
    assert bundle.splits["iid_val"].targets().flatten().tolist() == [1, 0, 1, 0, 1]
    cfg.dataset.select_split = "iid_val"
    assert data.load(cfg).spec.select_split == "iid_val"


def test_ogb_features_and_two_logits_on_request(make_cfg, folder: Path) -> None:
    cfg = drugood_cfg(make_cfg, path=folder, features="ogb", task_type="classification")
    bundle = data.load(cfg)
    assert (bundle.spec.dim_in, bundle.spec.dim_out) == (9, 2)
    assert bundle.splits["train"][1].y.dtype == torch.long and bundle.splits["train"][1].y.shape == (1,)


def test_a_gzipped_file_named_itself(make_cfg, tmp_path: Path) -> None:
    file = tmp_path / "anything.json.gz"
    file.write_bytes(gzip.compress(json.dumps(content()).encode()))
    assert len(data.load(drugood_cfg(make_cfg, path=file)).splits["ood_test"]) == 5


def test_rows_that_cannot_be_featurised_are_reported(make_cfg, folder: Path) -> None:
    raw = content()
    raw["split"]["train"][0]["smiles"] = "FS(F)(F)(F)(F)F"
    raw["split"]["ood_val"][3]["smiles"] = "[NH3]->[Fe]"
    raw["split"]["ood_test"][2]["cls_label"] = 0.5
    raw["split"]["iid_test"][1] = "row"
    (folder / f"{NAME}.json").write_text(json.dumps(raw))
    with pytest.raises(DataError, match=r"4 rows .* first is row 0 of split train of .*: atom 1 .* degree 6"):
        data.load(drugood_cfg(make_cfg, path=folder))
    bundle = data.load(drugood_cfg(make_cfg, path=folder, skip_bad_rows=True))
    assert [row.row for row in bundle.skipped] == [
        "row 0 of split train",
        "row 1 of split iid_test",
        "row 3 of split ood_val",
        "row 2 of split ood_test",
    ]
    assert [len(part) for part in bundle.splits.values()] == [4, 5, 4, 4, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{broken", "damaged or not JSON"),
        ("[" * 100_000, "damaged or not JSON"),
        ("[]", "not DrugOOD's JSON, which has split.train"),
        ('{"split": {"train": []}}', "not DrugOOD's JSON"),
    ],
)
def test_other_files_are_named(make_cfg, folder: Path, text: str, message: str) -> None:
    (folder / f"{NAME}.json").write_text(text)
    with pytest.raises(DataError, match=message) as caught:
        data.load(drugood_cfg(make_cfg, path=folder))
    assert len(str(caught.value).splitlines()) == 1 and NAME in str(caught.value)


def test_without_the_file_it_says_where_it_is_to_be_had(make_cfg) -> None:
    with pytest.raises(
        DataError, match=r"put lbap_core_ic50_assay\.json there; .*https://drugood\.github\.io"
    ):
        data.load(drugood_cfg(make_cfg))


@pytest.mark.realdata
@pytest.mark.parametrize("domain", ["assay", "size"])
def test_a_share_of_ec50(make_cfg, shared_data: Path, domain: str) -> None:
    cfg = make_cfg("DrugOOD", f"lbap_core_ec50_{domain}", path=shared_data / "drugood", subset=300)
    cfg.dataset.task_type = "classification_binary"
    sizes = [len(part) for part in data.load(cfg).splits.values()]
    expected = {"assay": (4540, 1502, 1557, 2572, 2490), "size": (4684, 1513, 1753, 2313, 2398)}[domain]
    assert sizes == [round(count * 300 / sum(expected)) for count in expected]


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.parametrize("features", ["attentivefp", "ogb"])
@pytest.mark.parametrize("domain", ["assay", "size"])
def test_all_of_ec50_has_the_known_sizes(make_cfg, shared_data: Path, domain: str, features: str) -> None:
    cfg = make_cfg("DrugOOD", f"lbap_core_ec50_{domain}", path=shared_data / "drugood", features=features)
    cfg.dataset.task_type = "classification_binary"
    assert data.load(cfg).skipped == []  # the split sizes are checked on load
