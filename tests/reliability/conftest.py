"""Fixtures of the reliability tests."""

from pathlib import Path

import pytest
from helpers.small_runs import SmallRuns


@pytest.fixture(scope="session")
def dataset_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture
def runs(tmp_path: Path, dataset_dir: Path) -> SmallRuns:
    return SmallRuns(tmp_path, dataset_dir)
