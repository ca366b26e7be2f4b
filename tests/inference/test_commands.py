"""The commands as a user runs them: files of every kind, bad rows, mistakes in one line."""

import csv
import gzip
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from graphgps_pearl import cli
from graphgps_pearl.inference.loading import load

CONFIGS = Path(__file__).resolve().parents[2] / "configs"


@pytest.fixture(scope="module")
def model(trained, tmp_path_factory) -> Path:
    """A model folder, made by the command."""
    folder = tmp_path_factory.mktemp("models") / "atoms"
    assert cli.main(["export", str(trained("Atom+BPEARL")), "-o", str(folder)]) == 0
    return folder


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def one_error(capsys) -> str:
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert len(lines) == 1, lines
    assert lines[0].startswith("error: ")
    return lines[0]


def test_predict_keeps_the_columns_of_a_csv_and_reports_bad_rows(model, tmp_path, capsys):
    source, out = tmp_path / "molecules.csv", tmp_path / "out.csv"
    source.write_text('id,SMILES,note\n7,CCO,"a, b"\n8,C(,bad\n9,,empty\n10,c1ccccc1,ring\n11,CC\n')
    assert cli.main(["predict", str(model), str(source), "-o", str(out)]) == 1
    rows = rows_of(out.read_text())
    assert list(rows[0]) == ["id", "SMILES", "note", "pred_atoms", "pred_rings", "error"]
    assert [row["id"] for row in rows] == ["7", "8", "9", "10", "11"]
    assert rows[0]["note"] == "a, b"
    assert [bool(row["pred_atoms"]) for row in rows] == [True, False, False, True, False]
    assert "does not parse" in rows[1]["error"]
    assert "empty" in rows[2]["error"]
    assert "2 cells, the header has 3" in rows[4]["error"]
    wanted = load(model, "cpu").predict(["CCO", "c1ccccc1"]).values
    found = [[float(rows[i][name]) for name in ("pred_atoms", "pred_rings")] for i in (0, 3)]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "molecules per second" in shown.err
    assert "2 of 5 molecules predicted, 3 could not be" in shown.err.splitlines()[-1]


@pytest.mark.parametrize("zipped", (False, True))
def test_predict_reads_smi(model, tmp_path, capsys, zipped):
    text = "SMILES Name\nCCO ethanol of wine\n\nc1ccccc1\n"
    source = tmp_path / ("m.smi.gz" if zipped else "m.smi")
    source.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert cli.main(["predict", str(model), str(source)]) == 0
    shown = capsys.readouterr()
    rows = rows_of(shown.out)
    assert [(row["smiles"], row["name"]) for row in rows] == [("CCO", "ethanol of wine"), ("c1ccccc1", "")]
    assert shown.err.splitlines()[-1] == "2 of 2 molecules predicted"


@pytest.mark.parametrize(
    "text", ("CCO\nc1ccccc1\n", "id,smiles\n1,CCO\n2,c1ccccc1\n", "smiles\nCCO\nc1ccccc1\n")
)
def test_predict_reads_standard_input_of_either_kind(model, monkeypatch, capsys, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert cli.main(["predict", str(model), "-"]) == 0
    assert [row["smiles"] for row in rows_of(capsys.readouterr().out)] == ["CCO", "c1ccccc1"]


def test_an_output_is_an_input_too(model, tmp_path, capsys):
    source = tmp_path / "first.csv"
    source.write_text("smiles,pred_atoms,error\nCCO,1,\n")
    assert cli.main(["predict", str(model), str(source)]) == 0
    row = rows_of(capsys.readouterr().out)[0]
    assert row["pred_atoms"] == "1"
    assert row["pred_atoms_2"]
    assert cli.main(["predict", str(model), str(source), "-o", str(source)]) == 2
    assert "another one" in one_error(capsys)


def test_the_spread_over_tables_is_a_column(trained, tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\nc1ccccc1CCN\n")
    run = str(trained("Atom+RPEARL"))
    capsys.readouterr()
    assert cli.main(["predict", run, str(source), "--tables", "3"]) == 0
    rows = rows_of(capsys.readouterr().out)
    assert float(rows[1]["spread_atoms"]) > 0
    assert cli.main(["predict", run, str(source), "--tables", "1"]) == 0
    assert "spread_atoms" not in rows_of(capsys.readouterr().out)[0]


def test_files_that_cannot_be_read_are_one_line(model, tmp_path, capsys):
    bad = tmp_path / "bad.csv"
    for content, complaint in (
        (b"name,structure\nx,CCO\n", "name it with --smiles-column"),
        (b"", "is empty"),
        (b"smiles\n", "no molecules"),
        (b"smiles\n\xff\xfe\n", "UTF-8"),
    ):
        bad.write_bytes(content)
        assert cli.main(["predict", str(model), str(bad)]) == 2
        assert complaint in one_error(capsys)
    assert cli.main(["predict", str(model), str(tmp_path / "none.csv")]) == 2
    assert "No such file" in one_error(capsys)
    bad.write_text("smiles,structure\nx,CCO\n")
    assert cli.main(["predict", str(model), str(bad), "--smiles-column", "structure"]) == 0


def test_models_that_are_none_are_one_line(trained, model, tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\n")
    junk = tmp_path / "junk.ckpt"
    junk.write_bytes(b"junk")
    run = trained("Atom+BPEARL")
    shutil.copy(run / "config.yaml", tmp_path / "config.yaml")
    (tmp_path / "empty").mkdir()
    for path, complaint in (
        ("wehi-log", "no such model"),
        (junk, "is not a checkpoint, or is damaged"),
        (tmp_path / "empty", "neither a model folder"),
        (run.parent, "holds the runs 0"),
        (CONFIGS / "quickstart.yaml", "is a config, which has no weights"),
        (tmp_path, "has no checkpoint"),
    ):
        assert cli.main(["predict", str(path), str(source)]) == 2
        assert complaint in one_error(capsys)


def test_damaged_and_foreign_model_folders_are_one_line(model, tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\n")
    folder = tmp_path / "model"
    description = json.loads((model / "model.json").read_text())

    def damaged(file: str, content: bytes) -> str:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(model, folder)
        (folder / file).write_bytes(content)
        assert cli.main(["predict", str(folder), str(source)]) == 2
        return one_error(capsys)

    for version in (1, 0, "2", None):
        changed = json.dumps({**description, "format_version": version}).encode()
        assert f"format_version is {str(version)!r}, this graphgps_pearl reads 2" in damaged(
            "model.json", changed
        )
    assert "get the model again" in damaged("model.json", b"{")
    changed = json.dumps({**description, "target_mean": [1.0]}).encode()
    assert "its checksum differs" in damaged("model.json", changed)
    weights = (model / "model.safetensors").read_bytes()
    assert "get the model again" in damaged("model.safetensors", weights[:1000])


def test_export_does_not_replace_unless_asked(trained, model, tmp_path, capsys):
    run = str(trained("Atom+BPEARL"))
    assert cli.main(["export", run, "-o", str(model)]) == 2
    assert "give --overwrite" in one_error(capsys)
    notes = tmp_path / "notes.md"
    notes.write_text("- Not for cats.\n")
    assert cli.main(["export", run, "-o", str(model), "--overwrite", "--notes", str(notes)]) == 0
    assert "predict" in capsys.readouterr().out
    assert (model / "README.md").read_text().endswith("- Not for cats.\n")
    assert sorted(file.name for file in model.iterdir()) == [
        "README.md",
        "config.yaml",
        "model.json",
        "model.safetensors",
    ]
    assert cli.main(["export", run, "-o", str(tmp_path)]) == 2
    assert "choose another name" in one_error(capsys)


def test_describe_a_model(model, capsys):
    assert cli.main(["describe", str(model)]) == 0
    shown = capsys.readouterr().out
    for fact in ("csv", "atoms, rings", "BPEARL", "hidden_dim 8", "2 x GINE+Transformer", "test: loss"):
        assert fact in shown
    assert "ms of a forward pass" in shown
    assert "MB of activations" in shown


@pytest.mark.parametrize("name", ("zinc-rpearl", "peptides-lappe-8s", "drugood-spe"))
def test_describe_a_config_without_its_data(name, capsys):
    small = ("train.batch_size", "2", "posenc_RPEARL.num_samples", "4")
    assert cli.main(["describe", str(CONFIGS / f"{name}.yaml"), *small]) == 0
    shown = capsys.readouterr().out
    assert "untrained" in shown
    assert "of the budget of 500,000" in shown
    assert "2 molecules of" in shown


def test_describe_says_when_the_budget_is_exceeded(capsys):
    words = ("--no-timing", "gt.dim_hidden", "128", "gnn.dim_inner", "128", "gt.layers", "10")
    assert cli.main(["describe", str(CONFIGS / "quickstart.yaml"), *words]) == 0
    assert "ABOVE THE BUDGET" in capsys.readouterr().out
    assert cli.main(["describe", str(CONFIGS / "quickstart.yaml"), "gt.layer", "3"]) == 2
    assert "gt.layers" in one_error(capsys)


def test_encode_writes_and_draws(trained, tmp_path, capsys):
    source, out, picture = tmp_path / "m.smi", tmp_path / "e.npz", tmp_path / "e.png"
    source.write_text("CCO\nC(\nc1ccccc1CC\n")
    words = ["-o", str(out), "--draw", str(picture)]
    run = str(trained("Atom+RWSE+BPEARL"))
    capsys.readouterr()
    assert cli.main(["encode", run, str(source), *words]) == 2
    assert "name the one to draw: RWSE, BPEARL" in one_error(capsys)
    assert cli.main(["encode", run, str(source), *words, "--encoding", "BPEARL"]) == 1
    assert "2 of 3 molecules encoded, 1 could not be: the first is row 2" in one_error(capsys)
    with np.load(out) as arrays:
        assert arrays["starts"].tolist() == [0, 3, 3, 11]
        assert arrays["smiles"].tolist() == ["CCO", "C(", "c1ccccc1CC"]
        assert arrays["BPEARL"].shape == arrays["RWSE"].shape == (11, 8)
        found = load(run, "cpu").encode(["CCO"]).arrays["BPEARL"][0]
        np.testing.assert_allclose(arrays["BPEARL"][:3], found, atol=1e-5)
    with Image.open(picture) as image:
        assert image.size == (2 * 340, 300)
        colours = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
        # Red and blue atoms, and not only black bonds on white.
        assert ((colours[:, 0] - colours[:, 2]) > 60).any()
        assert ((colours[:, 2] - colours[:, 0]) > 60).any()


def test_encode_a_config_and_its_mistakes(tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\n")
    quickstart = str(CONFIGS / "quickstart.yaml")
    assert cli.main(["encode", quickstart, str(source), "-o", str(tmp_path / "e.npz")]) == 0
    assert "untrained" in capsys.readouterr().err
    assert cli.main(["encode", quickstart, str(source), "-o", str(tmp_path / "e.txt")]) == 2
    assert "ends in .npz" in one_error(capsys)
    words = ["--draw", str(tmp_path / "e.png"), "--component", "99"]
    assert cli.main(["encode", quickstart, str(source), *words]) == 2
    assert "0 to 15" in capsys.readouterr().err
    config = str(CONFIGS / "peptides-none.yaml")
    assert cli.main(["encode", config, str(source), "-o", str(tmp_path / "e.npz")]) == 2
    assert "has no positional encoding" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["encode", quickstart, str(source)])


def test_mistakes_and_help_come_before_torch(tmp_path):
    script = (
        "import sys; from graphgps_pearl import cli\n"
        "code = cli.main(sys.argv[1:])\n"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    words = ["predict", "wehi-logp", str(tmp_path / "none.smi")]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert len(done.stderr.splitlines()) == 1
