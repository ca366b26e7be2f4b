"""Fixtures of the tests of reports."""

import pytest
from helpers.reports import write


@pytest.fixture
def results(tmp_path):
    """Two configs with three finished seeds, one of them with an unfinished and a failed run."""
    for seed, (plain, pearl) in enumerate([(0.31, 0.21), (0.33, 0.22), (0.30, 0.22)]):
        write(tmp_path, "zinc-none", "TypeDictNode", seed, plain)
        write(tmp_path, "zinc-bpearl", "TypeDictNode+BPEARL", seed, pearl)
    write(tmp_path, "zinc-bpearl", "TypeDictNode+BPEARL", 3, None)
    write(tmp_path, "zinc-bpearl", "TypeDictNode+BPEARL", 4, None)
    (tmp_path / "zinc-bpearl" / "4" / "failed.txt").write_text("error: out of luck\n")
    return tmp_path
