"""Memory that tensors give back stays with a training process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

MEASURE = """
import resource, sys, torch
from graphgps_pearl.training.memory import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
for turn in range(30):
    if turn == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.zeros(1_000_000) + 1 for _ in range(5)]
    del tensors
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(word: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, word], capture_output=True, text=True, check=True, timeout=300
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc is what is asked to keep it")
def test_steps_take_the_memory_of_the_step_before() -> None:
    kept = page_faults("keep")
    assert kept < 2_000  # one turn touches 5,000 pages, 20 turns are counted
    assert page_faults("default") > 10 * max(kept, 100)
