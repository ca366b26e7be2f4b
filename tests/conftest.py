"""Fixtures that every room of the tests shares."""

from __future__ import annotations

from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data beside the checkout; tests that need it skip where it is absent."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not (folder / "zinc12k" / "train.npz").is_file():
        pytest.skip(f"real data is not here: {folder}")
    return folder
