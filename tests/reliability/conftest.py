"""Fixtures of the reliability tests."""

from pathlib import Path

import pytest
from helpers.small_runs import SmallRuns


@pytest.fixture(scope="session")
def dataset_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datasets")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, dataset_dir: Path) -> Path:
    """A finished run of the small config, to compare with or to copy."""
    runs = SmallRuns(tmp_path_factory.mktemp("finished"), dataset_dir)
    assert runs.train() == 0
    return runs.path()


@pytest.fixture
def runs(tmp_path: Path, dataset_dir: Path) -> SmallRuns:
    return SmallRuns(tmp_path, dataset_dir)
