import csv
import math
import os

import pytest
from helpers.reports import comparisons, write
from scipy import stats

from graphgps_pearl.errors import UserError
from graphgps_pearl.report.comparison import paired_p_value, spread
from graphgps_pearl.report.rendering import as_csv, as_markdown, as_text


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


def test_a_run_without_a_number_is_in_no_mean_and_makes_no_best(tmp_path):
    for seed, value in enumerate((0.10, 0.20, 0.15, 0.12)):
        write(tmp_path, "a", "Atom", seed, value)
    for seed, value in enumerate((0.11, 0.19, 0.16, math.nan)):
        write(tmp_path, "b", "Atom", seed, value)
    write(tmp_path, "b", "Atom", 4, math.inf)
    (found,) = comparisons(tmp_path)
    assert found.verdict.best is None
    assert found.verdict.tied == ("a", "b")
    line = found.lines[1]
    assert (line.metrics["test"].count, sorted(line.by_seed)) == (3, [0, 1, 2])
    assert line.metrics["test"].mean == pytest.approx(0.46 / 3)
    assert [note for note in found.notes if "not a number" in note] == [
        f"not in the mean: b, seed {seed}: its test mae is not a number" for seed in (3, 4)
    ]
    (second,) = list(csv.DictReader(as_csv([found]).splitlines()))[1:]
    assert second["seeds"] == "3"


def test_the_verdict_says_how_it_is_known(tmp_path):
    for seed in range(4):
        write(tmp_path, "a", "Atom", seed, 0.1 + seed / 100)
    write(tmp_path, "b", "Atom", 0, 0.5, val=0.5)
    (found,) = comparisons(tmp_path)
    assert "one seed of b" in found.verdict.said and "p >=" not in found.verdict.said
    assert found.verdict.tied == ("a", "b")
    write(tmp_path, "b", "Atom", 7, 0.52, val=0.5)
    (found,) = comparisons(tmp_path)
    assert found.verdict.best == "a"
    assert "by standard deviations" in found.verdict.said and "paired by seed" not in found.verdict.said


def test_runs_with_other_data_are_named(tmp_path):
    for name in ("a", "b"):
        for seed in range(2):
            write(tmp_path, name, "Atom", seed, 0.1)
            (tmp_path / name / str(seed) / "data.json").write_text('{"identity": "1"}')
    assert not any("other data" in note for note in comparisons(tmp_path)[0].notes)
    (tmp_path / "b" / "1" / "data.json").write_text('{"identity": "2"}')
    (note,) = (note for note in comparisons(tmp_path)[0].notes if "other data" in note)
    assert note.endswith(": b, seed 1")


def test_a_baseline_that_is_not_finished_takes_no_table_away(tmp_path):
    write(tmp_path, "a", "Atom", 0, 0.1)
    write(tmp_path, "b", "Atom", 0, None)
    (found,) = comparisons(tmp_path, baseline="b")
    assert found.notes[-1] == "no p-values: the baseline b has no finished run"
    with pytest.raises(UserError, match="no baseline 'c'; there are a"):
        comparisons(tmp_path, baseline="c")
