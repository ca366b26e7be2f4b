"""The CSV of predictions: the input's columns as they were, the model's names as text."""

import csv
import errno
import io
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.inference.draw import draw_encodings
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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes")
def test_a_device_or_a_pipe_is_not_replaced_by_a_file(tmp_path: Path):
    """Root may rename a file to /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"pipe: is no file .*standard output"):
        PredictionWriter(str(tmp_path / "pipe"), "-")
    assert (tmp_path / "pipe").is_fifo()


def test_encodings_without_dim_pe_and_a_bad_row_are_written(tmp_path: Path):
    arrays = {"EquivStableLapPE": [np.ones((3, 64), np.float32), np.zeros((0, 0), np.float32)]}
    write_encodings(Encodings(["CCO", "C("], arrays, {1: "does not parse"}), tmp_path / "out.npz")
    assert np.load(tmp_path / "out.npz")["EquivStableLapPE"].shape == (3, 64)


def fail(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_the_earlier_encodings_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found = Encodings(["CCO"], {"RWSE": [np.eye(3, dtype=np.float32)]})
    written = {tmp_path / "out.npz": write_encodings, tmp_path / "out.png": draw_encodings}
    for path, write in written.items():
        write(found, path)
    before = {path: path.read_bytes() for path in written}
    monkeypatch.setattr(os, "fsync", fail)  # after all bytes are in the file
    monkeypatch.setattr(np, "savez_compressed", lambda file, **_: file.write(b"a part") and fail())
    for path, write in written.items():
        with pytest.raises(DataError, match=f"{path.name}: cannot be written .No space left on device."):
            write(found, path)
        assert path.read_bytes() == before[path]
    assert sorted(tmp_path.iterdir()) == sorted(written)


def test_a_full_disk_leaves_no_part_of_the_predictions(tmp_path: Path):
    class Full(io.StringIO):
        def close(self) -> None:
            fail()

    with (
        pytest.raises(OSError, match="No space left"),
        PredictionWriter(str(tmp_path / "out.csv"), "-") as writer,
    ):
        writer.header(["smiles"], ["pred_y"], with_spread=False)
        writer._stream.close()
        writer._stream = Full()  # what is left in the buffer has no place
    assert list(tmp_path.iterdir()) == []


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
