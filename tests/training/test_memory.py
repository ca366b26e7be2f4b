"""Memory that tensors give back stays with a training process."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from graphgps_pearl.training import memory

# What glibc holds, by its own books: page faults would also count what the kernel does of itself.
MEASURE = """
import ctypes, torch
from graphgps_pearl.training.memory import keep_freed_memory
{call}

class Held(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "mapped", "usmblks", "fsmblks", "used", "free", "keepcost"
    )]

held = ctypes.CDLL("libc.so.6").mallinfo2
held.restype = Held
before = held()
tensor = torch.ones(6_000_000)
during = held()
del tensor
print(during.mapped - before.mapped, held().free - before.free)
"""


def mapped_and_kept(call: str) -> tuple[int, int]:
    """The bytes of a tensor of 24 MB that have a mapping of their own, and those kept when it is gone."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE.format(call=call)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    mapped, kept = done.stdout.split()
    return int(mapped), int(kept)


@pytest.mark.skipif(
    not (sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallinfo2")),
    reason="glibc's malloc (2.33 or later, for its figures) is what is asked to keep it",
)
def test_the_memory_of_a_tensor_is_kept_for_the_next() -> None:
    mapped, kept = mapped_and_kept("keep_freed_memory()")
    assert mapped == 0
    assert kept > 20_000_000
    mapped, kept = mapped_and_kept("")
    assert mapped >= 24_000_000
    assert kept < 1_000_000


def test_memory_of_a_gpu_counts_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (123, 456))
    assert memory.free_bytes("gpu") == 123
    assert memory.free_bytes("cpu") not in (123, None)


def test_what_torch_holds_of_a_gpu_and_does_not_use_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a step the GPU has little left: torch keeps the memory of the activations for the next step."""
    figures = {"is_available": True, "mem_get_info": (10, 100), "memory_reserved": 80, "memory_allocated": 20}
    for name, value in figures.items():
        monkeypatch.setattr(torch.cuda, name, lambda value=value: value)
    assert memory.free_bytes("gpu") == 70


def test_cached_files_do_not_fill_a_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel counts them as used, and gives their memory to whoever asks for it."""
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.stat").write_text("anon 200\nfile 700\ninactive_file 600\nactive_file 50\n")
    monkeypatch.setattr("graphgps_pearl.memory._CGROUP", tmp_path, raising=False)
    assert memory.free_bytes("cpu") == 750
