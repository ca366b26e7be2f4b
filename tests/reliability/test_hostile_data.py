"""Data of any kind trains, or ends in one line that names file and row; never in a traceback."""

import json
from pathlib import Path

import pytest
from helpers.small_runs import SmallRuns
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphgps_pearl import config, data
from graphgps_pearl.errors import UserError

FUZZ = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CCCCC1", "CO", "CC", "OCCO", "CCCC", "CNC"]
ODD = ["", "C", "[H][H]", "not a molecule", "C1CC", "[Xe]", "C" * 300, "C.C", "\0", "é", '"', "[99999C]", "*"]


def load(tmp_path: Path, data_format: str, name: str, task_type: str, **dataset: object) -> data.DataBundle:
    words = {
        "split_mode": "random",
        "format": data_format,
        "name": name,
        "task": "graph",
        "task_type": task_type,
        **dataset,
    }
    pairs = [(f"dataset.{key}", str(value)) for key, value in words.items()]
    loss = "l1" if task_type == "regression" else "cross_entropy"
    pairs += [("dataset.dir", str(tmp_path / "datasets")), ("model.loss_fun", loss)]
    return data.load(config.parse("seed: 0", [word for pair in pairs for word in pair]))


def check(tmp_path: Path, data_format: str, name: str, task_type: str, **dataset: object) -> None:
    """It loads, or says in one line why not."""
    try:
        bundle = load(tmp_path, data_format, name, task_type, **dataset)
    except UserError as error:
        assert str(error).isprintable() and len(str(error)) < 2000
    else:
        assert sum(map(len, bundle.splits.values())) > 0


cells = st.one_of(st.sampled_from(SMILES + ODD), st.text(max_size=8), st.floats().map(str), st.just("nan"))


@FUZZ
@given(st.lists(st.lists(cells, min_size=1, max_size=4), max_size=15), st.booleans())
def test_any_table_loads_or_ends_in_one_line(tmp_path, rows, skip):
    file = tmp_path / "mine.csv"
    lines = ["smiles,y", *(",".join(row) for row in [[s, "1.5"] for s in SMILES] + rows)]
    file.write_text("\n".join(lines), encoding="utf-8", errors="replace")
    check(tmp_path, "csv", "mine", "regression", path=file, skip_bad_rows=skip)


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes_as_a_table_end_in_one_line(tmp_path, content):
    file = tmp_path / "mine.csv"
    file.write_bytes(content)
    check(tmp_path, "csv", "mine", "regression", path=file)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def drugood() -> dict:
    row = {"reg_label": 4.4, "assay_id": 1, "cls_label": 1, "domain_id": 2}
    splits = ("train", "ood_val", "ood_test", "iid_val", "iid_test")
    return {"cfg": {}, "split": {s: [{"smiles": m, **row} for m in SMILES[:3]] for s in splits}}


@FUZZ
@given(st.data())
def test_any_json_as_drugood_loads_or_ends_in_one_line(tmp_path, data):
    """A sound file in which one place, at any depth, holds anything."""
    content = holder = drugood()
    key: object = "split"
    for _ in range(data.draw(st.integers(0, 3))):
        inner = holder[key]
        holder, keys = inner, list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(holder[key], dict | list):
            break
    holder[key] = data.draw(JUNK)
    text = json.dumps(content)
    file = tmp_path / "lbap_core_ic50_assay.json"
    file.write_text(text[: data.draw(st.sampled_from([len(text), len(text) // 2]))])
    check(tmp_path, "DrugOOD", "lbap_core_ic50_assay", "classification_binary", path=file)


def from_table(file: Path) -> tuple[str, ...]:
    where = ("dataset.format", "csv", "dataset.name", "mine", "dataset.path", str(file))
    return (*where, "dataset.split_mode", "random", "dataset.subset", "0")


def test_a_molecule_without_atoms_names_its_row(runs, tmp_path, capsys):
    file = tmp_path / "mine.csv"
    file.write_text("smiles,y\n" + "".join(f"{s},1\n" for s in [*SMILES, ""]))
    assert runs.train(*from_table(file)) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "12" in line and "mine" in line


@pytest.mark.parametrize("encoder", ["RPEARL", "BPEARL", "RWSE", "LapPE"])
def test_single_atoms_missing_labels_and_a_large_molecule_train(runs: SmallRuns, tmp_path, encoder):
    """Graphs without edges, in pieces, without labels, and a graph far larger than the rest."""
    file = tmp_path / "mine.csv"
    smiles = ["C", "[Na+].[Cl-]", "O", "C" * 150, *SMILES * 3]
    labels = ["nan" if i % 3 == 0 else str(i / 7) for i in range(len(smiles))]
    file.write_text("smiles,y,z\n" + "".join(f"{s},1,{y}\n" for s, y in zip(smiles, labels, strict=True)))
    words = (
        *from_table(file),
        *("dataset.node_encoder_name", f"Atom+{encoder}", f"posenc_{encoder}.dim_pe", "4"),
        *("posenc_RWSE.model", "Linear", "posenc_LapPE.model", "DeepSet"),
        *("posenc_RWSE.kernel.times_func", "range(1,5)", "optim.max_epoch", "1", "train.batch_size", "6"),
    )
    assert runs.train(*words) == 0
