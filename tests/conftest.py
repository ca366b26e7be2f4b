"""Fixtures that every room of the tests shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from helpers.children import heed_signals
from helpers.small_runs import SmallRuns

heed_signals()  # before any test, so that all pass in the background too
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


@pytest.fixture(scope="session")
def dataset_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for prepared data that tests share."""
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, dataset_dir: Path) -> Path:
    """A finished run of the small config, to compare with or to copy."""
    runs = SmallRuns(tmp_path_factory.mktemp("finished"), dataset_dir)
    assert runs.train() == 0
    return runs.path()


@pytest.fixture
def runs(tmp_path: Path, dataset_dir: Path) -> SmallRuns:
    """Starts small runs in a folder of the test's own."""
    return SmallRuns(tmp_path, dataset_dir)
