"""The commands as a user runs them: files of every kind, bad rows, mistakes in one line."""

import subprocess
import sys

import numpy as np
from helpers.inference import one_error, rows_of

from graphgps_pearl import cli
from graphgps_pearl.inference.loading import load


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


def test_the_column_with_the_reasons_is_named_as_it_is(tmp_path, capsys):
    """The input may be the output of an earlier prediction."""
    (tmp_path / "out.csv").write_text("smiles,pred_penalised_logP,error\nC(,,does not parse\n")
    assert cli.main(["predict", "wehi-logp", str(tmp_path / "out.csv")]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("smiles,pred_penalised_logP,error,pred_penalised_logP_2,error_2\n")
    assert "the column 'error_2' says why" in shown.err


def test_export_replaces_the_folder_it_is_started_in(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["export", "wehi-logp", "-o", "model"]) == 0
    monkeypatch.chdir(tmp_path / "model")
    assert cli.main(["export", "wehi-logp", "-o", ".", "--overwrite"]) == 0
    assert load(tmp_path / "model", "cpu").facts.name == "model"


def test_encode_leaves_out_rows_that_do_not_fit_the_header(tmp_path, capsys):
    """A row with a cell too many may have its SMILES anywhere."""
    source, out = tmp_path / "molecules.csv", tmp_path / "out.npz"
    source.write_text("id,smiles\n1,CCO\n2,extra,CC\n3,c1ccccc1\n")
    assert cli.main(["encode", "quickstart", str(source), "-o", str(out)]) == 1
    assert "the first is row 2: the row has 3 cells, the header has 2" in capsys.readouterr().err
    found = np.load(out)
    assert found["starts"].tolist() == [0, 3, 3, 9]
    assert found["smiles"].tolist() == ["CCO", "extra", "c1ccccc1"]


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


def test_a_folder_is_no_output_and_meta_no_device(tmp_path, capsys):
    source = tmp_path / "m.smi"
    source.write_text("CCO\n")
    assert cli.main(["predict", "wehi-logp", str(source), "-o", str(tmp_path)]) == 2
    assert f"{tmp_path}: is a folder" in one_error(capsys)
    assert cli.main(["predict", "wehi-logp", str(source), "--device", "meta"]) == 2
    assert "device 'meta'" in one_error(capsys)


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
