"""The switch of the fast paths: environment variable and context manager."""

from __future__ import annotations

import subprocess
import sys

import pytest

from graphgps_pearl.switches import kernels_enabled, use_kernels


def test_the_context_manager_restores_what_was_set() -> None:
    before = kernels_enabled()
    with use_kernels(False):
        assert not kernels_enabled()
        with use_kernels(True):
            assert kernels_enabled()
        assert not kernels_enabled()
    with pytest.raises(ValueError, match="inside"), use_kernels(not before):
        raise ValueError("inside")
    assert kernels_enabled() == before


@pytest.mark.parametrize(("value", "expected"), [("0", "False"), ("off", "False"), ("1", "True")])
def test_the_environment_variable_sets_the_default(value: str, expected: str) -> None:
    code = "from graphgps_pearl.switches import kernels_enabled; print(kernels_enabled())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"GRAPHGPS_PEARL_KERNELS": value},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == expected
