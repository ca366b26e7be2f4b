"""Published figures of a dataset."""

from helpers.reports import comparisons

from graphgps_pearl.report.facts import published_rows
from graphgps_pearl.report.published import dataset_title, published
from graphgps_pearl.report.rendering import as_markdown


def test_published_figures_stand_apart(results):
    text = as_markdown(comparisons(results)[0])
    measured, others = text.split("Published, trained by others")
    assert "0.0644 ± 0.001" in others
    assert "0.0644" not in measured
    assert all(row["source"] for row in published("ZINC-12k"))


def test_fingerprints_are_among_the_figures_of_peptides(results):
    for name, value in (("Peptides-func", "0.746"), ("Peptides-struct", "0.2432")):
        assert value in [row["mean"] for row in published(name) if row["method"].startswith("ECFP")]
    config = {"dataset": {"format": "OGB", "name": "peptides-functional"}}
    assert dataset_title(config) == "Peptides-func"
    assert all("± " not in row[4][-2:] for row in published_rows(comparisons(results)[0]))


def test_a_table_of_the_users_own_has_no_published_figures():
    assert dataset_title({"dataset": {"format": "csv", "name": "peptides-struct"}}) is None
