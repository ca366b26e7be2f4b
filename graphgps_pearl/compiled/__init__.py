"""Kernels in C++, compiled on the machine where they run.

The machine's own C++ compiler makes one library of the sources here when it is first asked for, in about ten
seconds, and keeps it in the user's cache folder (``$XDG_CACHE_HOME`` or ``~/.cache``). Nothing is compiled at
installation. Where there is no compiler, callers have the same in torch.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import from_dlpack

from graphgps_pearl.switches import native_enabled

log = logging.getLogger(__name__)

LANES = {torch.float32: 8, torch.float64: 4}  # widths are multiples of these
_FOLDER = Path(__file__).parent
_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
_MAX_THREADS = 4  # the kernels run in one thread
_LARGE = 2**25  # bytes from which on glibc returns what is freed to the operating system
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def available() -> bool:
    """Whether the kernels may be used and are there."""
    return native_enabled() and torch.get_num_threads() <= _MAX_THREADS and library() is not None


@cache
def torch_products_are_slow() -> bool:
    """Whether these kernels multiply much faster than torch: on processors of AMD MKL takes AVX2 code, also
    where there is AVX-512."""
    processor = _processor()
    return torch.backends.mkl.is_available() and "AuthenticAMD" in processor and "avx512f" in processor


def pointer(tensor: Tensor | None) -> int | None:
    """Where a contiguous tensor is in memory."""
    if tensor is None:
        return None
    if tensor.device.type != "cpu":
        raise RuntimeError(f"tensors on two devices: one on {tensor.device}, others on the CPU")
    return tensor.data_ptr()


def buffer(like: Tensor, rows: int, width: int) -> Tensor:
    """A tensor [rows, width] without values, of another's type; a large one in memory that is kept, where
    :func:`keep_buffers` was called."""
    made = None
    if _kept.wanted and rows * width * like.element_size() >= _LARGE and (lib := library()) is not None:
        _kept.lent = True
        made = lib.lend(rows, width, 8 * like.element_size())
    return like.new_empty(rows, width) if made is None else from_dlpack(_capsule(made, b"dltensor", None))


class _Kept:
    wanted = lent = False


_kept = _Kept()


def keep_buffers(wanted: bool = True) -> None:
    """Have large tensors of :func:`buffer` take the memory of earlier ones from now on, or not any more.

    It stays with the process until :func:`release_buffers`, so a library must not do it; a training run may.
    """
    _kept.wanted = wanted


def release_buffers() -> int:
    """Return the memory that :func:`buffer` keeps and no tensor uses, and say how many bytes it was."""
    lib = library() if _kept.lent else None
    return 0 if lib is None else lib.release_idle()


def pointers(tensors: Sequence[Tensor | None]) -> Any:
    """An array of them."""
    return (ctypes.c_void_p * len(tensors))(*map(pointer, tensors))


def numbers(values: Sequence[Any], kind: Any) -> Any:
    """An array of C numbers."""
    return (kind * len(values))(*values)


def fields(*kinds: tuple[Any, str]) -> tuple[tuple[str, Any], ...]:
    """``_fields_`` of a structure, from kinds of C numbers and the names that have each."""
    return tuple((name, kind) for kind, names in kinds for name in names.split())


def filled(
    kind: type[ctypes.Structure],
    tensors: Mapping[str, Tensor | None],
    arrays: Mapping[str, ctypes.Array[Any]],
    **values: Any,
) -> ctypes.Structure:
    """A structure with pointers to tensors and arrays, and plain values."""
    at = {key: pointer(tensor) for key, tensor in tensors.items()}
    return kind(**values, **at, **{key: ctypes.cast(array, ctypes.c_void_p) for key, array in arrays.items()})


def call(name: str, dtype: torch.dtype, structure: ctypes.Structure) -> None:
    """Call a function of the library with a pointer to a structure."""
    function = getattr(library(), f"{name}_{str(dtype).removeprefix('torch.')}")
    status = function(ctypes.byref(structure))
    if status == 2:
        raise IndexError(f"the compiled kernel {name} was given an index that is out of range")
    if status:
        raise MemoryError(f"the compiled kernel {name} can't allocate memory for its buffers")


@cache
def library() -> ctypes.CDLL | None:
    """The compiled kernels, from the cache or made now; None where that is not possible."""
    names = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
    compiler = next((found for name in names if name and (found := shutil.which(name))), None)
    if compiler is None:
        return None
    try:
        path = _cache_folder() / f"kernels-{_key(compiler)}.so"
        if path.exists():
            try:
                return _loaded(path)
            except OSError:  # a damaged file
                path.unlink()
        _compile(compiler, path)
        return _loaded(path)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:  # RuntimeError: no home folder
        log.info("no compiled kernels: %s", error)
        return None


def _loaded(path: Path) -> ctypes.CDLL:
    lib = ctypes.CDLL(str(path))
    lib.lend.restype, lib.lend.argtypes = ctypes.c_void_p, (ctypes.c_int64,) * 3
    lib.release_idle.restype = ctypes.c_int64
    return lib


def _cache_folder() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "graphgps_pearl"


def _key(compiler: str) -> str:
    """Differs where the sources, the compiler or the processor do."""
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True, timeout=30).stdout
    listed = _processor().partition("flags")[2].partition("\n")[0]
    machine = (*_FLAGS, platform.machine(), platform.processor(), listed)
    parts = [*(path.read_bytes() for path in _sources("*")), version, "\0".join(machine).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def _processor() -> str:
    """What Linux says of the processors; nothing elsewhere."""
    info = Path("/proc/cpuinfo")
    return info.read_text() if info.exists() else ""


def _compile(compiler: str, path: Path) -> None:
    """Make the library; several processes may do so at the same time."""
    started = time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / path.name
        command = [compiler, *_FLAGS, *map(str, _sources("*.cpp")), "-o", str(made)]
        subprocess.run(command, capture_output=True, check=True, timeout=300)
        made.replace(path)
    log.info("compiled kernels in %.0f s, kept in %s", time.monotonic() - started, path)


def _sources(pattern: str) -> list[Path]:
    return sorted(path for path in _FOLDER.glob(pattern) if path.suffix in (".cpp", ".h"))
