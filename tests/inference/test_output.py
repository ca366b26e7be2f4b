"""The CSV of predictions: the input's columns as they were, the model's names as text."""

import csv
import io
import sys
from pathlib import Path

import numpy as np

from graphgps_pearl.inference.model import Encodings
from graphgps_pearl.inference.output import PredictionWriter, write_encodings


def test_a_models_names_are_no_formulas_and_the_inputs_cells_stay(tmp_path: Path):
    target = tmp_path / "out.csv"
    with PredictionWriter(str(target), "-") as writer:
        writer.header(["smiles", "=id"], ["=HYPERLINK(1)"], with_spread=False)
        writer.row(["CCO", "-x"], np.array([-1.5]), None, "")
        writer.row(["bad", "1"], np.array([np.nan]), None, "@ does not parse")
    rows = list(csv.reader(target.open(newline="")))
    assert rows == [
        ["smiles", "=id", "'=HYPERLINK(1)", "error"],
        ["CCO", "-x", "-1.5", ""],
        ["bad", "1", "", "'@ does not parse"],
    ]


def test_encodings_without_dim_pe_and_a_bad_row_are_written(tmp_path: Path):
    arrays = {"EquivStableLapPE": [np.ones((3, 64), np.float32), np.zeros((0, 0), np.float32)]}
    write_encodings(Encodings(["CCO", "C("], arrays, {1: "does not parse"}), tmp_path / "out.npz")
    assert np.load(tmp_path / "out.npz")["EquivStableLapPE"].shape == (3, 64)


def test_a_terminal_gets_no_control_characters(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    with PredictionWriter(None, "-") as writer:
        writer.header(["smiles"], ["pred_y"], with_spread=False)
        writer.row(["\x1b[2J"], np.array([1.0]), None, "")
    assert "\x1b" not in shown.getvalue() and "\\x1b[2J" in shown.getvalue()
