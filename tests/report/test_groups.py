"""Which runs are compared with which."""

import csv

from helpers.reports import ZINC, comparisons, write

from graphgps_pearl.report.command import report


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


def test_another_split_column_is_another_group(tmp_path):
    data = "format: csv, name: mine, path: mine.csv, split_mode: standard"
    for name, column in (("a", "set"), ("b", "other")):
        write(tmp_path, name, "Atom", 0, 0.1, data=f"{data}, split_column: {column}")
    assert len(comparisons(tmp_path)) == 2


def test_groups_with_the_same_beginning_have_plots_of_their_own(tmp_path):
    long = "my-measurements-of-solubility-in-water-at-room-temperature"
    for name, column in (("a", "set"), ("b", "other")):
        data = f"format: csv, name: mine, path: {long}.csv, split_column: {column}"
        write(tmp_path, name, "Atom", 0, 0.1, data=data)
    assert report([str(tmp_path)]) == 0
    assert len(list(tmp_path.glob("*curves-by-epoch.png"))) == 2


def test_what_makes_figures_less_comparable_is_said(tmp_path):
    write(tmp_path, "a", "Atom", 0, 0.1)
    write(tmp_path, "b", "Atom", 0, 0.1)
    assert comparisons(tmp_path)[0].notes == []
    write(tmp_path, "c", "Atom", 0, 0.1, data=f"{ZINC}, split_index: 1")
    file = tmp_path / "c" / "0" / "config.yaml"
    file.write_text(file.read_text().replace("max_epoch: 3", "max_epoch: 90"))
    assert comparisons(tmp_path)[0].notes == [
        "not the same graphs: dataset.split_index of seed 0 is a 0, b 0, c 1",
        "not the same schedule: optim.max_epoch is a 3, b 3, c 90",
    ]
