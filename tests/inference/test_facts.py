"""Facts of a run that its predictions need."""

import pytest
from helpers.inference import damage

from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.loading import load


def test_damaged_facts_are_one_line(run):
    damage(run / "data.json")
    with pytest.raises(DataError, match=r"data\.json.*damaged"):
        load(run, "cpu")
