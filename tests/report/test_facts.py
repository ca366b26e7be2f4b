"""What a report says about its runs besides their numbers."""

from helpers.reports import comparisons

from graphgps_pearl.report.facts import facts, schedule_warning
from graphgps_pearl.report.rendering import as_markdown


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
