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
