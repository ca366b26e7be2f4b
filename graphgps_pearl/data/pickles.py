"""Pickles of public datasets, read without running what is in them.

A pickle is a program. This reader knows the handful of names that the public files need (tensors, arrays,
ordered dicts), replaces each by a function of its own, and refuses every other one. Tensors inside a pickle
hold bytes that ``torch.storage._load_from_bytes`` would unpickle without any check; here they are read as
numbers or by ``torch.load(weights_only=True)``, and only when the tensor is asked for, since of ZINC's
quarter million molecules the benchmark takes 12,000.
"""

from __future__ import annotations

import io
import pickle
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphgps_pearl.errors import DataError

# What a damaged or hostile stream can raise while it is read.
_BROKEN = (
    pickle.UnpicklingError,
    ValueError,
    EOFError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    RuntimeError,
    OverflowError,
    MemoryError,
)


class RefusedPickleError(pickle.UnpicklingError):
    """The pickle asks for a name that no dataset needs."""


@dataclass(frozen=True, slots=True)
class _Storage:
    """The bytes of a tensor's storage, as they stand in the pickle."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class LazyTensor:
    """A tensor in a pickle that has not been decoded."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    def decode(self) -> Tensor:
        """The tensor; a view beyond its storage is refused."""
        flat = _old_storage(self.storage.payload)
        if flat is None:
            flat = _any_storage(self.storage.payload)
        return flat.as_strided(self.size, self.stride, self.offset).clone()


def _any_storage(payload: bytes) -> Tensor:
    """The numbers in a storage's bytes, as torch reads them with ``weights_only=True``."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "TypedStorage is deprecated", UserWarning)
        storage = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
        if not isinstance(storage, torch.storage.TypedStorage):
            raise RefusedPickleError("a tensor's bytes hold something else than numbers")
        return torch.empty(0, dtype=storage.dtype).set_(storage.untyped())


class _HeaderReader(pickle.Unpickler):
    """The header of a storage: numbers, strings and the name of a storage's type, nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if module != "torch" or name not in _STORAGE_TYPES:
            raise RefusedPickleError(f"a tensor's bytes ask for {module}.{name}, and were not run")
        return _STORAGE_TYPES[name]

    def persistent_load(self, pid: Any) -> tuple[np.dtype[Any], int]:
        kind, dtype, _, device, count, view = pid
        if kind != "storage" or device != "cpu" or view is not None or not isinstance(dtype, np.dtype):
            raise RefusedPickleError("a tensor's bytes hold something else than numbers")
        return dtype, int(count)


def _old_storage(payload: bytes) -> Tensor | None:
    """The numbers in a storage as torch wrote it before its zip format, or None if it is no such storage.

    Five small pickles (magic number, version, byte order, the storage's type and length, its key), the
    length as eight bytes, the numbers. ``torch.load`` reads the same in half a millisecond, which for
    ZINC's 36,000 tensors is 18 s; this takes 2 s.
    """
    file = io.BytesIO(payload)
    if _HeaderReader(file).load() != _MAGIC:
        return None
    version, system = _HeaderReader(file).load(), _HeaderReader(file).load()
    if version != 1001 or not isinstance(system, dict) or not system.get("little_endian"):
        return None
    dtype, count = _HeaderReader(file).load()
    keys = _HeaderReader(file).load()
    written = int.from_bytes(file.read(8), "little")
    if len(keys) != 1 or written != count or len(payload) - file.tell() != count * dtype.itemsize:
        raise RefusedPickleError("a tensor's bytes are damaged")
    return torch.from_numpy(np.frombuffer(payload, dtype, count, file.tell()).copy())


_MAGIC = 0x1950A86A20F9469CFC6C
_STORAGE_TYPES = {
    "LongStorage": np.dtype("<i8"),
    "IntStorage": np.dtype("<i4"),
    "ShortStorage": np.dtype("<i2"),
    "CharStorage": np.dtype("i1"),
    "ByteStorage": np.dtype("u1"),
    "BoolStorage": np.dtype("?"),
    "FloatStorage": np.dtype("<f4"),
    "DoubleStorage": np.dtype("<f8"),
}


def _lazy_storage(payload: object) -> _Storage:
    if not isinstance(payload, bytes):
        raise RefusedPickleError("a tensor's storage is not bytes")
    return _Storage(payload)


def _lazy_tensor(storage: object, offset: int, size: Any, stride: Any, *_: object) -> LazyTensor:
    if not isinstance(storage, _Storage):
        raise RefusedPickleError("a tensor without a storage")
    return LazyTensor(storage, int(offset), tuple(map(int, size)), tuple(map(int, stride)))


def _empty_array(kind: object, shape: object, _: object) -> np.ndarray[Any, Any]:
    if kind is not np.ndarray or shape != (0,):
        raise RefusedPickleError("an array of another kind than numpy's own")
    return np.empty((0,), dtype=np.int8)


def _number_type(code: object, *_: object) -> np.dtype[Any]:
    dtype = np.dtype(code) if isinstance(code, str) else np.dtype("O")
    if dtype.kind not in "biuf":
        raise RefusedPickleError(f"an array of {code!r}, not of numbers")
    return dtype


_ALLOWED: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _lazy_tensor,
    ("torch.storage", "_load_from_bytes"): _lazy_storage,
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): _number_type,
}


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise RefusedPickleError(f"it asks for {module}.{name}, which no dataset needs, and was not run")
        return _ALLOWED[module, name]

    def persistent_load(self, pid: Any) -> Any:
        raise RefusedPickleError("it refers to objects outside itself")


def read_pickle(path: Path) -> Any:
    """The plain lists, dicts, numbers, arrays and :class:`LazyTensor` in a pickle; DataError for anything
    else."""
    try:
        with path.open("rb") as file:
            return _Reader(file).load()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except _BROKEN as error:
        raise DataError(
            f"{path}: not a dataset's pickle ({_first_line(error)}); download it again"
        ) from error


def decode(value: object, path: Path, what: str) -> Tensor:
    """A tensor or array from :func:`read_pickle`; DataError naming ``what`` where it is neither, or
    damaged."""
    try:
        if isinstance(value, LazyTensor):
            return value.decode()
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value)
    except _BROKEN as error:
        raise DataError(f"{path}: {what} cannot be read ({_first_line(error)}); download it again") from error
    raise DataError(f"{path}: {what} is a {type(value).__name__}, not a tensor; download it again")


def read_index_lists(path: Path, names: Sequence[str]) -> dict[str, list[int]]:
    """A pickled dict of split name -> whole numbers (arrays or lists)."""
    content = read_pickle(path)
    if not isinstance(content, dict) or not set(names) <= set(content):
        raise DataError(f"{path}: not a split file, which is a dict with {', '.join(names)}")
    lists = {}
    for name in names:
        numbers = np.asarray(content[name])
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise DataError(f"{path}: split {name!r} is not a list of row numbers")
        lists[name] = [int(number) for number in numbers]
    return lists


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:160]
