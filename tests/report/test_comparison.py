import csv
import json
import math
import os
import re

import pytest
from scipy import stats

from graphgps_pearl.errors import UserError
from graphgps_pearl.report.command import report
from graphgps_pearl.report.comparison import compare_all, paired_p_value, spread
from graphgps_pearl.report.facts import facts, schedule_warning
from graphgps_pearl.report.groups import grouped
from graphgps_pearl.report.published import published
from graphgps_pearl.report.rendering import as_csv, as_markdown, as_text
from graphgps_pearl.runs.results import find_runs

ZINC = "format: PyG-ZINC, name: subset"


def write(folder, name, encoder, seed, test, val=0.25, data=ZINC, metric="mae", **settings) -> None:
    """A run; finished if it has a test value."""
    path = folder / name / str(seed)
    path.mkdir(parents=True)
    more = "".join(f"{key}: {value}\n" for key, value in settings.items())
    text = f"dataset: {{{data}, node_encoder_name: {encoder}}}\noptim: {{max_epoch: 3}}\n{more}"
    (path / "config.yaml").write_text(text)
    (path / "metrics.csv").write_text(
        f"epoch,seconds,train_{metric},val_{metric},test_{metric}\n0,36,0.9,0.8,0.7\n1,36,0.5,0.6,\n"
    )
    best = {"epoch": 1, f"train_{metric}": 0.1, f"val_{metric}": val, f"test_{metric}": test}
    result = {
        "config": name,
        "seed": seed,
        "splits": ["train", "val", "test"],
        "metric": f"val_{metric}",
        "larger_is_better": metric != "mae",
        "best": best,
        "epochs": 3,
        "parameters": {"encoder": 100, "local": 200, "head": 50},
        "seconds_per_epoch": 2.0,
        "prepare_seconds": 1.0,
        "memory_mb": 300.0,
    }
    if test is not None:
        (path / "result.json").write_text(json.dumps(result))


@pytest.fixture
def results(tmp_path):
    """Two configs with three finished seeds, one of them with an unfinished and a failed run."""
    for seed, (plain, pearl) in enumerate([(0.31, 0.21), (0.33, 0.22), (0.30, 0.22)]):
        write(tmp_path, "zinc-none", "TypeDictNode", seed, plain)
        write(tmp_path, "zinc-bpearl", "TypeDictNode+BPEARL", seed, pearl)
    write(tmp_path, "zinc-bpearl", "TypeDictNode+BPEARL", 3, None)
    write(tmp_path, "zinc-bpearl", "TypeDictNode+BPEARL", 4, None)
    (tmp_path / "zinc-bpearl" / "4" / "failed.txt").write_text("error: out of luck\n")
    return tmp_path


def comparisons(folder, **settings):
    return compare_all(grouped(find_runs(folder)), **settings)


def test_statistics_are_scipys():
    values = [0.31, 0.33, 0.30]
    assert spread(values).mean == pytest.approx(stats.tmean(values))
    assert spread(values).std == pytest.approx(stats.tstd(values))
    first, second = {0: 0.31, 1: 0.33, 2: 0.30, 9: 5.0}, {0: 0.21, 1: 0.22, 2: 0.22}
    expected = stats.ttest_rel([0.31, 0.33, 0.30], [0.21, 0.22, 0.22]).pvalue
    assert paired_p_value(first, second) == pytest.approx(expected)
    assert math.isnan(paired_p_value({0: 1.0}, {0: 2.0}))
    assert math.isnan(paired_p_value({0: 1.0, 1: 2.0}, {0: 2.0, 1: 3.0}))


def test_lines_and_what_is_missing(results):
    (found,) = comparisons(results, baseline="zinc-none")
    none, pearl = (next(line for line in found.lines if line.name == n) for n in ("zinc-none", "zinc-bpearl"))
    assert found.verdict.best == "zinc-bpearl"
    assert (none.encoder, pearl.encoder) == ("none", "BPEARL")
    assert pearl.metrics["test"].mean == pytest.approx((0.21 + 0.22 + 0.22) / 3)
    assert pearl.gap.mean == pytest.approx(pearl.metrics["test"].mean - 0.1)
    assert (pearl.encoder_parameters, pearl.network_parameters) == (100, 250)
    assert pearl.p_value < 0.05
    assert math.isnan(none.p_value)
    assert found.notes == [
        "not in the table: zinc-bpearl, seed 3: unfinished, 2 of 3 epochs",
        "not in the table: zinc-bpearl, seed 4: failed: error: out of luck",
    ]
    text = as_text(found)
    assert "0.2167 ± 0.0058" in text
    assert "not in the table: zinc-bpearl, seed 4: failed" in text
    assert "**0.2167 ± 0.0058**" in as_markdown(found)
    (first, second) = csv.DictReader(as_csv([found]).splitlines())
    assert float(first["test_mae_mean"]) == pytest.approx(0.65 / 3)
    assert second["config"] == "zinc-none"


def test_published_figures_stand_apart(results):
    text = as_markdown(comparisons(results)[0])
    measured, others = text.split("Published, trained by others")
    assert "0.0644 ± 0.001" in others
    assert "0.0644" not in measured
    assert all(row["source"] for row in published("ZINC-12k"))


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "nowhere: there is no such folder"),
        ([".", "--baseline", "zinc-rwse"], "the baseline 'zinc-rwse' has no finished run"),
        ([".", "--split", "ood"], "there is no split 'ood'; there are train, val, test"),
        ([".", "absent"], "holds no runs"),
    ],
)
def test_mistakes_are_one_line(results, monkeypatch, capsys, words, said):
    monkeypatch.chdir(results)
    assert report(words) == 2
    error = capsys.readouterr().err.strip()
    assert said in error
    assert len(error.splitlines()) == 1


def test_datasets_tasks_and_metrics_are_groups_of_their_own(results, capsys):
    for seed, auroc in enumerate((0.7, 0.72)):
        write(results, "peptides", "Atom+RWSE", seed, auroc, data="format: OGB, name: p", metric="auroc")
    write(results, "zinc-small", "TypeDictNode", 0, 0.4, data=f"{ZINC}, subset: 200")
    write(results, "zinc-other", "TypeDictNode", 0, None, data=f"{ZINC}, subset: 99")
    path = results / "zinc-none" / "0" / "result.json"
    path.write_text(path.read_text().replace('"val_mae",', '"val_loss",', 1))
    found = comparisons(results)
    names = {c.title: [line.name for line in c.lines] for c in found}
    assert sorted(names.values()) == [
        ["peptides"],
        ["zinc-bpearl", "zinc-none"],
        ["zinc-none"],
        ["zinc-small"],
    ]
    assert len(names) == 4
    assert any("200 graphs" in title for title in names)
    assert "in no table: zinc-other, seed 0: unfinished, 2 of 3 epochs" in found[-1].notes
    assert report([str(results), "--baseline", "zinc-none"]) == 0
    shown = capsys.readouterr().out
    assert "test auroc" in shown and "test mae" in shown
    rows = list(csv.DictReader((results / "report.csv").read_text().splitlines()))
    assert {row["dataset"] for row in rows} == set(names)
    assert next(row for row in rows if row["config"] == "peptides")["test_mae_mean"] == ""
    assert len(list(results.glob("*curves-by-epoch.png"))) == 4


def verdict(folder, *configs):
    """Of configs given as (validation, test) by seed."""
    for i, values in enumerate(configs):
        for seed, (val, test) in enumerate(values):
            write(folder, f"c{i}", "Atom", seed, test, val=val)
    return comparisons(folder)[0].verdict


def test_no_best_where_validation_prefers_another(tmp_path):
    found = verdict(tmp_path, [(0.2, 0.5), (0.2, 0.52)], [(0.3, 0.1), (0.3, 0.12)])
    assert found.best is None and found.tied == ()
    assert "lowest test mae: c1, but val prefers c0" in found.said


def test_differences_that_may_be_chance_are_ties(tmp_path):
    found = verdict(
        tmp_path, [(0.2, 0.50), (0.2, 0.60)], [(0.3, 0.61), (0.3, 0.58)], [(0.3, 0.9), (0.3, 1.0)]
    )
    assert found.best is None
    assert found.tied == ("c0", "c1")
    assert "not told apart from c1" in found.said


def test_single_runs_are_never_told_apart(tmp_path):
    found = verdict(tmp_path, [(0.2, 0.1)], [(0.3, 0.9)])
    assert found.best is None and found.tied == ()
    assert "not told apart from c1 (one seed" in found.said


def test_seeds_with_other_settings_are_left_out_of_the_mean_and_named(results):
    write(results, "zinc-none", "TypeDictNode", 7, 9.9, num_threads=3)  # changes no number
    write(results, "zinc-none", "TypeDictNode", 8, 9.9, train="{batch_size: 7}")
    for seed, when in ((8, 10), (7, 10**9 * 2)):
        os.utime(results / "zinc-none" / str(seed) / "result.json", (when, when))
    (found,) = comparisons(results)
    line = next(line for line in found.lines if line.name == "zinc-none")
    assert sorted(line.by_seed) == [0, 1, 2, 7]
    (note,) = (note for note in found.notes if "seed 8" in note)
    assert note.startswith("not in the mean: zinc-none, seed 8: it has train.batch_size = 7 instead of")


def test_the_table_fits_a_narrow_terminal(results):
    (found,) = comparisons(results, baseline="zinc-none")
    text = as_text(found, 60)
    table = text.split("\n\n")[1].splitlines()
    assert max(map(len, table)) <= 60
    assert "test mae" in table[0] and "seeds" in table[0] and "memory MB" not in table[0]
    assert "memory MB" in as_text(found)


def test_a_tiny_p_value_is_not_zero(tmp_path):
    for seed in range(4):
        write(tmp_path, "a", "Atom", seed, 0.1 + seed * 1e-5)
        write(tmp_path, "b", "Atom+RWSE", seed, 0.9 + seed * 2e-5)
    (found,) = comparisons(tmp_path, baseline="a")
    assert found.lines[1].p_value < 1e-6
    assert "< 0.001" in as_text(found)


def test_facts_and_the_warning_about_the_schedule(results):
    run = results / "zinc-none" / "0"
    (run / "data.json").write_text('{"sizes": {"train": 10000, "val": 1000}}')
    (run / "versions.json").write_text('{"torch": "2.0"}')
    (run / "machine.json").write_text('{"hardware": "a machine", "command": "main.py --cfg a.yaml"}')
    (found,) = comparisons(results)
    known = dict(facts(found))
    assert known["dataset"] == "ZINC subset, regression" or known["dataset"].startswith("ZINC subset")
    assert "zinc-none: train 10,000, val 1,000" in known["split sizes"]
    assert "3 epochs" in known["schedule"]
    assert (known["hardware"], known["command of a run"]) == ("a machine", "main.py --cfg a.yaml")
    assert known["versions"] == "torch 2.0"
    assert "at most 3 epochs, the published ones for 1,400 to 2,000" in schedule_warning(found)
    assert "at most 3 epochs" in as_markdown(found)


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


def test_the_page_explains_every_column(results):
    assert report([str(results), "--baseline", "zinc-none"]) == 0
    page = (results / "report.html").read_text()
    titles = re.findall(r'<th title="[^"]+">([^<]+)</th>', page)
    assert {"config", "test mae", "gap", "seeds"} <= set(titles)
    assert [t for t in titles if f"<dt>{t}</dt>" not in page] == []


def test_a_damaged_run_is_named_and_left_out(results, caplog):
    (results / "zinc-none" / "0" / "config.yaml").write_text("")
    (results / "zinc-none" / "1" / "metrics.csv").write_bytes(b"\xff\xfe")
    assert [run.seed for run in find_runs(results)["zinc-none"]] == [2]
    assert "0 is left out: config.yaml or metrics.csv is damaged" in caplog.text
    with pytest.raises(UserError, match="holds no runs of 'zinc-nine'; it has zinc-bpearl, zinc-none"):
        find_runs(results, ["zinc-none", "zinc-nine"])
