"""One process at a time."""

import pytest

from graphgps_pearl.errors import UserError
from graphgps_pearl.runs.lock import exclusive


def test_a_second_holder_is_refused_until_the_first_lets_go(tmp_path):
    path = tmp_path / "made" / "run.lock"
    with (
        exclusive(path, "busy here"),
        pytest.raises(UserError, match=r"^busy here$"),
        exclusive(path, "busy here"),
    ):
        pass
    with exclusive(path, "busy here"):
        assert path.exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match=r"file: cannot be made or written.*out_dir"),
        exclusive(tmp_path / "file" / "run.lock", ""),
    ):
        pass
