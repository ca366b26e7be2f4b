import csv
import json
import math

import pytest
from scipy import stats

from graphgps_pearl.errors import UserError
from graphgps_pearl.report.command import report
from graphgps_pearl.report.comparison import compare, paired_p_value, spread
from graphgps_pearl.report.page import as_csv, as_markdown, as_text
from graphgps_pearl.report.published import published
from graphgps_pearl.runs.results import find_runs

CONFIG = """
dataset: {{format: PyG-ZINC, name: subset, node_encoder_name: {encoder}}}
optim: {{max_epoch: 3}}
"""


@pytest.fixture
def results(tmp_path):
    """Two configs with three finished seeds, one of them with an unfinished and a failed run beside."""

    def write(name: str, encoder: str, seed: int, test_mae: float | None) -> None:
        folder = tmp_path / name / str(seed)
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(CONFIG.format(encoder=encoder))
        (folder / "metrics.csv").write_text(
            "epoch,seconds,train_mae,val_mae,test_mae\n0,36,0.9,0.8,0.7\n1,36,0.5,0.6,\n"
        )
        if test_mae is not None:
            result = {
                "config": name,
                "seed": seed,
                "splits": ["train", "val", "test"],
                "metric": "val_mae",
                "larger_is_better": False,
                "best": {"epoch": 1, "train_mae": 0.1, "val_mae": 0.25, "test_mae": test_mae},
                "epochs": 3,
                "parameters": {"encoder": 100, "local": 200, "head": 50},
                "seconds_per_epoch": 2.0,
                "prepare_seconds": 1.0,
                "memory_mb": 300.0,
            }
            (folder / "result.json").write_text(json.dumps(result))

    for seed, (plain, pearl) in enumerate([(0.31, 0.21), (0.33, 0.22), (0.30, 0.22)]):
        write("zinc-none", "TypeDictNode", seed, plain)
        write("zinc-bpearl", "TypeDictNode+BPEARL", seed, pearl)
    write("zinc-bpearl", "TypeDictNode+BPEARL", 3, None)
    write("zinc-bpearl", "TypeDictNode+BPEARL", 4, None)
    (tmp_path / "zinc-bpearl" / "4" / "failed.txt").write_text("error: out of luck\n")
    return tmp_path


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
    runs = find_runs(results)
    found = compare(runs, baseline="zinc-none")
    none, pearl = (next(line for line in found.lines if line.name == n) for n in ("zinc-none", "zinc-bpearl"))
    assert found.best == "zinc-bpearl"
    assert (none.encoder, pearl.encoder) == ("none", "BPEARL")
    assert pearl.metrics["test"].mean == pytest.approx((0.21 + 0.22 + 0.22) / 3)
    assert pearl.gap.mean == pytest.approx(pearl.metrics["test"].mean - 0.1)
    assert (pearl.encoder_parameters, pearl.network_parameters) == (100, 250)
    assert pearl.p_value < 0.05
    assert math.isnan(none.p_value)
    assert found.notes == [
        "zinc-bpearl, seed 3: unfinished, 2 of 3 epochs",
        "zinc-bpearl, seed 4: failed: error: out of luck",
    ]
    text = as_text(found)
    assert "0.2167 ± 0.0058" in text
    assert "not in the table: zinc-bpearl, seed 4: failed" in text
    assert "**0.2167 ± 0.0058**" in as_markdown(found, runs)
    (first, second) = csv.DictReader(as_csv(found).splitlines())
    assert float(first["test_mae_mean"]) == pytest.approx(0.65 / 3)
    assert second["config"] == "zinc-none"


def test_published_figures_stand_apart(results):
    text = as_markdown(compare(find_runs(results)), find_runs(results))
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
    assert content["lines"][0]["metrics"]["test"]["count"] == 3
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


def test_runs_selected_by_different_metrics_are_not_compared(results):
    path = results / "zinc-none" / "0" / "result.json"
    path.write_text(path.read_text().replace('"val_mae",', '"val_loss",', 1))
    with pytest.raises(UserError, match="not selected by the same metric"):
        compare(find_runs(results))


def test_a_damaged_run_is_named_and_left_out(results, caplog):
    (results / "zinc-none" / "0" / "config.yaml").write_text("")
    (results / "zinc-none" / "1" / "metrics.csv").write_bytes(b"\xff\xfe")
    assert [run.seed for run in find_runs(results)["zinc-none"]] == [2]
    assert "0 is left out: config.yaml or metrics.csv is damaged" in caplog.text
    with pytest.raises(UserError, match="holds no runs of 'zinc-nine'; it has zinc-bpearl, zinc-none"):
        find_runs(results, ["zinc-none", "zinc-nine"])
