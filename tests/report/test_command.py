"""The command ``report``."""

import json

import pytest

from graphgps_pearl.errors import UserError
from graphgps_pearl.report.command import report
from graphgps_pearl.runs.results import find_runs


def test_the_report_command_writes_every_form(results, capsys):
    assert report([str(results), "--baseline", "zinc-none"]) == 0
    page = (results / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    assert "http" not in page.replace("http-equiv", "")  # nothing is fetched from anywhere
    assert 'class="best">0.2167' in page
    content = json.loads((results / "report.json").read_text())
    assert content["groups"][0]["lines"][0]["metrics"]["test"]["count"] == 3
    assert (results / "curves-by-epoch.png").read_bytes().startswith(b"\x89PNG")
    assert "best test mae: zinc-bpearl" in capsys.readouterr().out


def test_options_may_stand_before_the_names(results, capsys):
    assert report([str(results), "--split", "val", "zinc-none"]) == 0
    assert "zinc-bpearl" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere: there is no such folder"),
        ([".", "--baseline", "zinc-rwse"], "there is no baseline 'zinc-rwse'; there are"),
        ([".", "--split", "ood"], "there is no split 'ood'; there are train, val, test"),
        ([".", "absent"], "holds no runs"),
        (["zinc-none"], "these are the runs of one config, so give"),
        (["zinc-none/0"], "it is one run, so give"),
    ],
)
def test_mistakes_are_one_line(results, monkeypatch, capsys, words, said):
    monkeypatch.chdir(results)
    assert report(words) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1


def test_a_damaged_run_is_named_and_left_out(results, caplog):
    (results / "zinc-none" / "0" / "config.yaml").write_text("")
    assert [run.seed for run in find_runs(results)["zinc-none"]] == [1, 2]
    assert "0 is left out: config.yaml is damaged" in caplog.text
    with pytest.raises(UserError, match="holds no runs of 'zinc-nine'; it has zinc-bpearl, zinc-none"):
        find_runs(results, ["zinc-none", "zinc-nine"])


@pytest.mark.parametrize(
    "damage", [b"\xff\xfe", b"epoch,seconds,val_mae\n0,36,abc\n", b"epoch,seconds,val_mae\n0,1,0.5,7\n"]
)
def test_damaged_curves_leave_the_result_in_the_table(results, caplog, capsys, damage):
    (results / "zinc-none" / "1" / "metrics.csv").write_bytes(damage)
    assert report([str(results)]) == 0
    assert "1/metrics.csv: is damaged" in caplog.text
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("zinc-none"))
    assert line.split()[-1] == "3"  # seeds in the mean


def test_a_named_folder_without_runs_is_said(results, caplog):
    (results / "empty").mkdir()
    assert report([str(results), "zinc-none", "empty"]) == 0
    assert "empty holds no runs" in caplog.text
