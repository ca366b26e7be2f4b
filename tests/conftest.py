"""Fixtures that every room of the tests shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data: $GRAPHGPS_PEARL_DATA, or next to the checkout; tests skip where there is
    none, and fail where the variable names a folder without it."""
    named = os.environ.get("GRAPHGPS_PEARL_DATA")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not (folder / "zinc12k" / "train.npz").is_file():
        assert not named, f"GRAPHGPS_PEARL_DATA = {named}: has no zinc12k/train.npz"
        pytest.skip(f"no real data in {folder}; name its folder in GRAPHGPS_PEARL_DATA")
    return folder
