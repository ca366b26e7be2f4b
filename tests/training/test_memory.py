"""Memory that tensors give back stays with a training process."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

MEASURE = """
import resource, torch
from graphgps_pearl.training.memory import keep_freed_memory
keep_freed_memory()
for turn in range(30):
    if turn == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.zeros(1_000_000) + 1 for _ in range(5)]
    del tensors
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's malloc is what is asked to keep it")
def test_steps_take_the_memory_of_the_step_before() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], capture_output=True, text=True, check=True, timeout=300
    )
    # 20 turns are counted, and one touches 5,000 pages; without it 13,000 to 195,000 of them were new
    assert int(done.stdout) < 8_000
