"""Names from elsewhere stay text: no escape sequence, tag, table column or formula comes out of them."""

import csv
import doctest
import io
import logging

from hypothesis import given
from hypothesis import strategies as st

from graphgps_pearl import escaping
from graphgps_pearl.command import run_command
from graphgps_pearl.errors import UserError

HOSTILE = "a|b\n| c <img src=x onerror=alert(1)> \x1b[2J\x9b31m\u202e`x` [y](http://z) \\"


def test_the_examples_hold():
    assert doctest.testmod(escaping).failed == 0


@given(st.text() | st.just(HOSTILE))
def test_nothing_that_a_terminal_obeys_remains(text):
    assert escaping.printable(text).isprintable()
    assert escaping.printable(escaping.printable(text)) == escaping.printable(text)


def test_printable_text_is_left_alone():
    assert escaping.printable("Å² pred_logS [unit] 日本") == "Å² pred_logS [unit] 日本"


@given(st.text() | st.just(HOSTILE))
def test_a_markdown_cell_is_one_cell_without_tags(text):
    cell = escaping.markdown(text)
    assert cell.isprintable() and "<" not in cell and ">" not in cell
    assert "|" not in cell.replace("\\\\", "").replace("\\|", "")


def test_formulas_become_text_and_numbers_stay_numbers():
    for formula in ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "+-1"):
        assert escaping.csv_cell(formula) == "'" + formula
    for plain in ("-1", "+2.5", "-1e-5", "-.5", "-inf", "nan", "name", "", -3, 2.5, None):
        assert escaping.csv_cell(plain) == plain
    written = io.StringIO()
    csv.writer(written).writerow([escaping.csv_cell("=1,2\n3")])
    assert next(csv.reader(io.StringIO(written.getvalue(), newline=""))) == ["'=1,2\n3"]


def test_errors_and_log_lines_reach_the_terminal_without_control_characters(capsys, monkeypatch):
    monkeypatch.setattr(logging.root, "handlers", [])

    def work() -> None:
        logging.getLogger("graphgps_pearl.data").warning("graph %s\nsecond line", "\x1b[2J")
        raise UserError("\x1b]0;title\x07 is no column\nand more")

    assert run_command(work) == 2
    assert capsys.readouterr().err.splitlines() == [
        "graph \\x1b[2J",
        "second line",
        "error: \\x1b]0;title\\x07 is no column\\nand more",
    ]
