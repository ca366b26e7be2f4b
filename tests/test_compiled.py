"""Kernels in C++ are made when first used, kept, and done without where that is not possible."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from helpers.small_runs import SmallRuns, assert_same_run

from graphgps_pearl import compiled
from graphgps_pearl.memory import require_memory
from graphgps_pearl.pearl import BPEARL
from graphgps_pearl.pearl.kernels import native
from graphgps_pearl.switches import native_enabled, use_kernels
from graphgps_pearl.training import memory

RING = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])


@pytest.fixture(autouse=True)
def asked_again() -> Iterator[None]:
    """The library is looked for in each test, and again after it."""
    compiled.library.cache_clear()
    yield
    compiled.library.cache_clear()


def encode() -> torch.Tensor:
    torch.manual_seed(0)
    with use_kernels(True):
        return BPEARL(4, hidden_dim=8, num_layers=2).double()(RING)


def test_without_a_compiler_the_result_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = encode()
    compiled.library.cache_clear()
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    assert compiled.library() is None and not compiled.available()
    torch.testing.assert_close(encode(), expected, rtol=1e-9, atol=1e-9)


def test_a_compiler_that_fails_is_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && echo 1 && exit 0\nexit 1\n')
    broken.chmod(0o755)
    monkeypatch.setenv("CXX", str(broken))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert compiled.library() is None
    assert list((tmp_path / "cache" / "graphgps_pearl").iterdir()) == []


def test_a_cache_that_cannot_be_written_is_done_without(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert compiled.library() is None


def test_a_damaged_library_is_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = compiled.library()
    if whole is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    damaged = tmp_path / "graphgps_pearl" / Path(whole._name).name
    damaged.parent.mkdir()
    damaged.write_bytes(b"")
    copied = []

    def compile_(compiler: str, path: Path) -> None:
        copied.append(shutil.copy(whole._name, path))

    monkeypatch.setattr(compiled, "_compile", compile_)
    compiled.library.cache_clear()
    assert compiled.library() is not None and copied == [damaged]


@pytest.mark.slow
def test_the_library_is_made_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if compiled.library() is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled.library.cache_clear()
    assert compiled.library() is not None
    (made,) = (tmp_path / "graphgps_pearl").iterdir()
    changed = made.stat().st_mtime_ns
    compiled.library.cache_clear()
    assert compiled.library() is not None and made.stat().st_mtime_ns == changed


@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_memory_that_is_not_there_is_an_error_and_not_the_end_of_the_process() -> None:
    size = torch.tensor([8])
    taps = native._Taps(graphs=1, taps=2**45, sizes=compiled.pointer(size))  # two petabytes
    with pytest.raises(MemoryError, match="kernel taps can't allocate memory"):
        compiled.call("taps", torch.float32, taps)


def test_the_switch() -> None:
    with use_kernels(True, native=False):
        assert not native_enabled() and not compiled.available()
    with use_kernels(False):
        assert not native_enabled()
    with use_kernels(True):
        assert native_enabled()


def test_more_threads_than_one_kernel_is_worth() -> None:
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(64)
        with use_kernels(True):
            assert not compiled.available()
    finally:
        torch.set_num_threads(threads)


@pytest.fixture
def kept() -> Iterator[None]:
    """Large buffers take the memory of earlier ones."""
    if compiled.library() is None:
        pytest.skip("no C++ compiler")
    compiled.keep_buffers()
    yield
    compiled.keep_buffers(False)
    compiled.release_buffers()


LIKE, ROWS = torch.empty(0, dtype=torch.float64), 2**16  # with 64 columns the smallest that is large


def test_a_large_buffer_takes_the_memory_of_an_earlier_one(kept: None) -> None:
    first = compiled.buffer(LIKE, ROWS, 64)
    assert (first.shape, first.dtype, first.is_contiguous()) == ((ROWS, 64), torch.float64, True)
    where, last = first.data_ptr(), first.fill_(1.0)[-1]
    del first
    second = compiled.buffer(LIKE, ROWS, 64).fill_(2.0)
    assert second.data_ptr() != where and last.sum() == 64  # a view holds all of it
    del last
    assert compiled.buffer(LIKE, ROWS - 1, 66).data_ptr() != where  # larger
    assert compiled.release_buffers() == 8 * (ROWS - 1) * 66  # which is kept in exchange
    assert compiled.release_buffers() == 0 and second.sum() == 2.0 * 64 * ROWS
    where = second.data_ptr()
    del second
    assert compiled.buffer(LIKE, ROWS, 64).data_ptr() == where


def test_small_buffers_and_those_of_a_library_are_not_kept(kept: None) -> None:
    compiled.buffer(LIKE, ROWS, 63)
    compiled.keep_buffers(False)
    compiled.buffer(LIKE, ROWS, 64)
    assert compiled.release_buffers() == 0


def test_gradients_in_kept_buffers_are_the_same(kept: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def gradients() -> list[torch.Tensor]:
        torch.manual_seed(0)
        encoding = BPEARL(4, hidden_dim=8, num_layers=3, quotient=False).double()
        out = encoding(RING).square().sum()
        return [
            gradient
            for _ in range(2)  # the second pass reads what the first has kept
            for gradient in torch.autograd.grad(out, list(encoding.parameters()), retain_graph=True)
        ]

    with use_kernels(True):
        expected = gradients()
        monkeypatch.setattr(compiled, "_LARGE", 1)
        for _ in range(2):
            torch.testing.assert_close(gradients(), expected, rtol=0, atol=0)
    assert compiled.release_buffers() > 0


def test_a_run_in_kept_buffers_is_the_same_and_returns_them(
    kept: None, runs: SmallRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = ("posenc_RPEARL.hidden_dim", "8", "gt.n_heads", "1")
    assert runs.train(*served, tag="plain") == 0
    assert compiled.release_buffers() == 0
    monkeypatch.setattr(compiled, "_LARGE", 1)
    returned = []
    monkeypatch.setattr(memory, "release_buffers", lambda: returned.append(compiled.release_buffers()))
    assert runs.train(*served, tag="kept") == 0
    assert_same_run(runs.path("kept"), runs.path("plain"))
    assert len(returned) == 4 and all(returned[:-1]) and compiled.release_buffers() == 0


def test_kept_buffers_are_returned_before_memory_is_called_short(
    kept: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = iter([2**28, 2**30])
    monkeypatch.setattr("graphgps_pearl.memory.free_bytes", lambda device: next(found))
    compiled.buffer(LIKE, ROWS, 64)
    require_memory(2**29, "cpu", "it", "stop")
    assert compiled.release_buffers() == 0


def test_loading_leaves_the_floating_point_unit_alone() -> None:
    """Libraries linked with -ffast-math flush denormal numbers to zero, in all of the process."""
    compiled.library()
    assert float(torch.tensor(1e-310, dtype=torch.float64) / 2) > 0
