"""A comparison as text, Markdown and CSV."""

import csv

from helpers.reports import comparisons, write

from graphgps_pearl.report.command import report
from graphgps_pearl.report.rendering import as_text


def test_the_table_fits_a_narrow_terminal(results):
    (found,) = comparisons(results, baseline="zinc-none")
    text = as_text(found, 60)
    table = text.split("\n\n")[1].splitlines()
    assert max(map(len, table)) <= 60
    assert "test mae" in table[0] and "p-value" in table[0] and "memory MB" not in table[0]
    assert "memory MB" in as_text(found)


def test_p_values_that_were_asked_for_fit_a_terminal_of_80_columns(tmp_path):
    for seed in range(2):
        write(tmp_path, "a-config-with-some-name", "Atom", seed, 0.1 + seed / 9)
        write(tmp_path, "another-config", "Atom+RWSE", seed, 0.9 + seed / 7)
    (found,) = comparisons(tmp_path, baseline="a-config-with-some-name")
    table = as_text(found, 80).split("\n\n")[1].splitlines()
    assert "p-value" in table[0] and "seeds" in table[0] and max(map(len, table)) <= 80
    assert " baseline" in table[1] and " 0.0" in table[2]


def test_a_long_name_takes_no_metric_away(tmp_path):
    names = [f"zinc-bpearl-with-a-rather-long-tag-of-the-user-{end}" for end in "ab"]
    for seed in range(2):
        for name in names:
            write(tmp_path, name, "Atom", seed, 0.1 + seed / 9)
    (found,) = comparisons(tmp_path, baseline=names[0])
    table = as_text(found, 60).split("\n\n")[1].splitlines()
    assert max(map(len, table)) == 60
    assert "test mae" in table[0] and "p-value" in table[0]
    assert [line.split()[0][-7:] for line in table[1:]] == ["-user-a", "-user-b"]


def test_a_tiny_p_value_is_not_zero(tmp_path):
    for seed in range(4):
        write(tmp_path, "a", "Atom", seed, 0.1 + seed * 1e-5)
        write(tmp_path, "b", "Atom+RWSE", seed, 0.9 + seed * 2e-5)
    (found,) = comparisons(tmp_path, baseline="a")
    assert found.lines[1].p_value < 1e-6
    assert "< 0.001" in as_text(found)


def test_names_from_elsewhere_are_escaped_in_every_form(results, capsys):
    name = "=a|b<script>\x1b[31m"
    (results / "zinc-none").rename(results / name)
    assert report([str(results)]) == 0
    assert "\x1b" not in capsys.readouterr().out
    page = (results / "report.html").read_text()
    assert "<script>" not in page and "\x1b" not in page
    lines = (results / "report.md").read_text().splitlines()
    columns = {
        line.count("|") - line.count("\\|") for line in lines if line.startswith("| ") and "zinc" in line
    }
    (row,) = (line for line in lines if line.startswith("| =a"))
    assert {row.count("|") - row.count("\\|")} == columns
    assert "<script>" not in row
    rows = list(csv.reader((results / "report.csv").read_text().splitlines()))
    assert [r[1] for r in rows if r[1].startswith("'=a")]
