"""Files of molecules that ``predict`` reads."""

import gzip
import io
import sys

import pytest
from helpers.inference import one_error, rows_of

from graphgps_pearl import cli
from graphgps_pearl.data.molecules import parse
from graphgps_pearl.inference.molecule_files import read_molecules


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


def test_the_extension_of_a_cxsmiles_is_part_of_the_molecule(tmp_path):
    source = tmp_path / "m.smi"
    source.write_text("CC |^1:1| ethyl radical\nC[C@H](F)Cl |&1:1|\nCCO |x\nCCO\t|$;;a b$|\tethanol\n")
    table = read_molecules(str(source))
    assert table.smiles == ["CC |^1:1|", "C[C@H](F)Cl |&1:1|", "CCO", "CCO |$;;a b$|"]
    names = ["ethyl radical", "", "|x", "ethanol"]
    assert table.rows == [list(row) for row in zip(table.smiles, names, strict=True)]
    assert [a.GetNumRadicalElectrons() for a in parse(table.smiles[0]).GetAtoms()] == [0, 1]


@pytest.mark.parametrize(
    "text", ("CCO\nc1ccccc1\n", "id,smiles\n1,CCO\n2,c1ccccc1\n", "smiles\nCCO\nc1ccccc1\n")
)
def test_predict_reads_standard_input_of_either_kind(model, monkeypatch, capsys, text):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert cli.main(["predict", str(model), "-"]) == 0
    assert [row["smiles"] for row in rows_of(capsys.readouterr().out)] == ["CCO", "c1ccccc1"]


def test_rows_of_empty_cells_stay_and_cells_are_not_altered(tmp_path):
    table = tmp_path / "m.tsv"
    table.write_text('smiles\tnote\nCCO\t"a\n\nb"\n\t\n\nCC\tc\n  \n')
    assert read_molecules(str(table)).rows == [["CCO", "a\n\nb"], ["", ""], ["CC", "c"]]


def test_an_output_is_an_input_too(model, tmp_path, capsys):
    source = tmp_path / "first.csv"
    source.write_text("smiles,pred_atoms,error\nCCO,1,\n")
    assert cli.main(["predict", str(model), str(source)]) == 0
    row = rows_of(capsys.readouterr().out)[0]
    assert row["pred_atoms"] == "1"
    assert row["pred_atoms_2"]
    assert cli.main(["predict", str(model), str(source), "-o", str(source)]) == 2
    assert "another one" in one_error(capsys)


def test_files_that_cannot_be_read_are_one_line(model, tmp_path, capsys):
    bad = tmp_path / "bad.csv"
    for content, complaint in (
        (b"name,structure\nx,CCO\n", "name it with --smiles-column"),
        (b"", "is empty"),
        (b"smiles\n", "no molecules"),
        (b"smiles,x,smiles\nCCO,1,CC\n", "2 columns 'smiles'"),
        (b"smiles\n\xff\xfe\n", "UTF-8"),
    ):
        bad.write_bytes(content)
        assert cli.main(["predict", str(model), str(bad)]) == 2
        assert complaint in one_error(capsys)
    assert cli.main(["predict", str(model), str(tmp_path / "none.csv")]) == 2
    assert "No such file" in one_error(capsys)
    bad.write_text("smiles,structure\nx,CCO\n")
    assert cli.main(["predict", str(model), str(bad), "--smiles-column", "structure"]) == 0
