"""The CSV of predictions: the input's columns as they were, the model's names as text."""

import csv
import io
import sys
from pathlib import Path

import numpy as np

from graphgps_pearl.inference.output import PredictionWriter


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
