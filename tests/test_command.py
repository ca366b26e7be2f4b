"""Logging to a terminal of 80 columns, seen through a pseudo-terminal."""

import io
import os
import pty
import subprocess
import sys

import pytest

from graphgps_pearl.command import run_command

LOG = """
import logging
from graphgps_pearl.command import run_command
words = " ".join(f"word{i}" for i in range(40))
run_command(lambda: logging.getLogger("graphgps_pearl.x").info("%s /a/path%s \\x1b[2J", words, "/long" * 20))
"""


def test_lines_of_a_terminal_break_between_words_and_those_of_a_file_do_not():
    master, slave = pty.openpty()
    command = [sys.executable, "-c", LOG]
    environment = {**os.environ, "COLUMNS": "80"}
    subprocess.run(command, stderr=slave, env=environment, check=True)
    os.close(slave)
    shown = os.read(master, 10_000).decode().split("\r\n")
    os.close(master)
    assert all(len(line) <= 80 for line in shown if "/long" not in line)
    assert " ".join("\n".join(shown).split()).startswith("word0 word1 word2 ")
    assert any(line.strip().startswith("/a/path/long") for line in shown), "a path stays whole, to be copied"
    in_file = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stderr
    assert in_file.count("\n") == 1
    assert "\x1b" not in in_file + "".join(shown)


def test_describe_fits_80_columns():
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "graphgps_pearl", "describe", "wehi-logp", "--no-timing"]
    with os.fdopen(master, "rb", 0) as screen:
        subprocess.run(command, stdout=slave, env={**os.environ, "COLUMNS": "80"}, check=True)
        os.close(slave)
        shown = screen.read(20_000).decode().split("\r\n")
    assert max(map(len, shown)) <= 80
    assert [line[:12].strip() for line in shown if line[:12].strip()][:2] == ["model", "data"]


def test_a_terminal_without_a_letter_shows_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pipes on Windows, and terminals with an old locale, have neither Θ nor ²."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", stream)
    assert run_command(lambda: stream.write("Θ(N³)\n")) == 0
    stream.flush()
    assert stream.buffer.getvalue().decode("latin-1") == "\\u0398(N³)\n"
