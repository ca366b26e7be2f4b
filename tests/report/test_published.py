"""Published figures of a dataset."""

from helpers.reports import comparisons

from graphgps_pearl.report.published import published
from graphgps_pearl.report.rendering import as_markdown


def test_published_figures_stand_apart(results):
    text = as_markdown(comparisons(results)[0])
    measured, others = text.split("Published, trained by others")
    assert "0.0644 ± 0.001" in others
    assert "0.0644" not in measured
    assert all(row["source"] for row in published("ZINC-12k"))
