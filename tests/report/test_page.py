"""The page of a report."""

import re

from graphgps_pearl.report.command import report


def test_the_page_explains_every_column(results):
    assert report([str(results), "--baseline", "zinc-none"]) == 0
    page = (results / "report.html").read_text()
    titles = re.findall(r'<th title="[^"]+">([^<]+)</th>', page)
    assert {"config", "test mae", "gap", "seeds"} <= set(titles)
    assert [t for t in titles if f"<dt>{t}</dt>" not in page] == []
