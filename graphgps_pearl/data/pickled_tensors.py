"""Tensors and arrays as they stand in a pickle: kept as bytes, decoded when asked for.

Pickles are read by :class:`BoundedUnpickler`, which is Python's own written in Python: that in C believes the
memo numbers in the stream and reserves memory for them, and four changed bytes can ask for 64 GB.
``torch.storage._load_from_bytes`` would unpickle a tensor's inner bytes without any check. Here they are
read as numbers where they are in torch's old format, and by ``torch.load(weights_only=True)`` in its zip
format.
"""

from __future__ import annotations

import io
import math
import pickle
import warnings
import zipfile
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

_MAGIC = pickle.dumps(0x1950A86A20F9469CFC6C, protocol=2)
_VERSION = 1001
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


_OPCODES = (
    *(pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.POP, pickle.GLOBAL, pickle.STACK_GLOBAL),
    *(pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BINFLOAT),
    *(pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1, pickle.LONG4),
    *(
        pickle.SHORT_BINUNICODE,
        pickle.BINUNICODE,
        pickle.BINUNICODE8,
        pickle.SHORT_BINSTRING,
        pickle.BINSTRING,
    ),
    *(pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINBYTES8),
    *(pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
    *(pickle.EMPTY_LIST, pickle.APPEND, pickle.APPENDS, pickle.EMPTY_DICT, pickle.REDUCE, pickle.NEWOBJ),
    *(pickle.BINGET, pickle.LONG_BINGET, pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE, pickle.BINPERSID),
)
_KEYS = (str, bytes, int, float, type(None))


class RefusedPickleError(pickle.UnpicklingError):
    """The pickle holds, or asks for, something that no dataset needs."""


class BoundedUnpickler(pickle._Unpickler):
    """Reads the opcodes that datasets use, and no other; subclasses say what names stand for.

    Lists and dicts hold anything. The keys of dicts are plain values: hashing tuples in tuples recurses, and
    their number may be exponential in that of the stream's bytes. State is given to stand-ins alone.
    """

    stack: list[Any]

    def _refuse(self) -> None:
        raise RefusedPickleError("it has an opcode that datasets do not use")

    def _set_items(self, items: list[Any]) -> None:
        target, keys = self.stack[-1], items[::2]
        if type(target) is not dict and type(target) is not OrderedDict:
            raise RefusedPickleError("it sets items of what is no dict")
        if not all(isinstance(key, _KEYS) for key in keys):
            raise RefusedPickleError("it has a dict whose keys are neither text nor numbers")
        target.update(zip(keys, items[1::2], strict=True))

    def _set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set_items([key, value])

    def _build(self) -> None:
        state = self.stack.pop()
        if not isinstance(self.stack[-1], PickledNumberType | PickledArray | PickledMatrix):
            raise RefusedPickleError("it gives a state to what has none")
        self.stack[-1].__setstate__(state)

    dispatch: ClassVar[dict[int, Any]] = {
        **dict.fromkeys(range(256), _refuse),
        **{code[0]: pickle._Unpickler.dispatch[code[0]] for code in _OPCODES},
        pickle.SETITEM[0]: _set_item,
        pickle.SETITEMS[0]: lambda self: self._set_items(self.pop_mark()),
        pickle.BUILD[0]: _build,
    }

    def persistent_load(self, pid: Any) -> Any:
        """Nothing outside the stream."""
        raise RefusedPickleError("it refers to objects outside itself")


@dataclass(frozen=True, slots=True)
class PickledStorage:
    """Stands for ``torch.storage._load_from_bytes(payload)``."""

    payload: bytes

    def numbers(self) -> Tensor:
        """All numbers of the storage [count]."""
        if not isinstance(self.payload, bytes):
            raise RefusedPickleError("a tensor's storage is not bytes")
        if self.payload.startswith(_MAGIC):
            return _old_format(self.payload)
        if self.payload.startswith(b"PK"):
            return _zip_format(self.payload)
        raise RefusedPickleError("a tensor's bytes hold something else than numbers")


class PickledTensor:
    """Stands for ``torch._utils._rebuild_tensor_v2(storage, offset, size, stride, ...)``."""

    __slots__ = ("_offset", "_size", "_storage", "_stride")

    def __init__(self, storage: object, offset: int, size: Any, stride: Any, *_: object) -> None:
        if not isinstance(storage, PickledStorage):
            raise RefusedPickleError("a tensor without a storage")
        self._storage, self._offset = storage, int(offset)
        self._size, self._stride = tuple(map(int, size)), tuple(map(int, stride))
        if len(self._size) > 8 or any(size < 0 for size in self._size):
            raise RefusedPickleError("a tensor of an impossible shape")

    def numel(self) -> int:
        """Elements that the tensor has."""
        return math.prod(self._size)

    def tensor(self) -> Tensor:
        """The tensor itself; a view beyond its storage is refused (by ``as_strided``), and so is one that is
        larger than it (strides of 0, which take no bytes and any amount of memory)."""
        numbers = self._storage.numbers()
        if self.numel() > numbers.numel():
            raise RefusedPickleError("a tensor that is larger than its bytes")
        return numbers.as_strided(self._size, self._stride, self._offset).clone()


class PickledNumberType:
    """Stands for a numpy dtype of plain numbers."""

    __slots__ = ("code",)

    def __init__(self, code: object, *_: object) -> None:
        dtype = np.dtype(code) if isinstance(code, str) and len(code) <= 3 else None
        if dtype is None or dtype.kind not in "biuf":
            raise RefusedPickleError(f"an array of {code!r}, not of numbers")
        self.code = dtype.str[1:]

    def __setstate__(self, state: Any) -> None:
        # (version, byte order, subtype, names, fields, ...); the public files are little-endian.
        if state[1] not in ("<", "|") or any(part is not None for part in state[2:5]):
            raise RefusedPickleError("an array of other than plain numbers")


class PickledArray:
    """Stands for a numpy array, whose own ``__setstate__`` is not made for strangers' bytes."""

    __slots__ = ("_state",)

    def __init__(self, *_: object) -> None:
        self._state: Any = None

    def __setstate__(self, state: Any) -> None:
        self._state = state

    def array(self) -> np.ndarray[Any, Any]:
        """The array itself."""
        _, shape, dtype, fortran, content = self._state
        content = content.encode("latin1") if isinstance(content, str) else content
        if not isinstance(dtype, PickledNumberType) or not isinstance(content, bytes):
            raise RefusedPickleError("an array of other than plain numbers")
        flat = np.frombuffer(content, np.dtype(f"<{dtype.code}")).copy()
        return flat.reshape(shape, order="F" if fortran else "C")


class PickledMatrix:
    """Stands for a scipy matrix in compressed rows."""

    __slots__ = ("_state",)

    def __setstate__(self, state: Any) -> None:
        self._state = state

    def array(self) -> np.ndarray[Any, Any]:
        """The dense matrix, float32; one of 2 GB or more is refused, as no dataset has such."""
        parts = [self._state[key] for key in ("data", "indices", "indptr")]
        rows, columns = map(int, self._state["_shape"])
        if not all(isinstance(part, PickledArray) for part in parts) or rows * columns >= 1 << 29:
            raise RefusedPickleError("a sparse matrix of other than plain numbers, or too large")
        values, where, starts = (part.array() for part in parts)
        dense = np.zeros((rows, columns), np.float32)
        dense[np.repeat(np.arange(rows), np.diff(starts)), where] = values
        return dense


class _HeaderReader(BoundedUnpickler):
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


def _old_format(payload: bytes) -> Tensor:
    """The numbers in a storage as torch wrote it before its zip format.

    A magic number and four small pickles (version, byte order, the storage's type and length, its key), the
    length in eight bytes, the numbers. Measured on ZINC: 0.07 ms a tensor where ``torch.load`` takes 0.30 ms,
    and there are 36,000 of them.
    """
    stream = io.BytesIO(payload)
    stream.seek(len(_MAGIC))
    version, system, storage, keys = (_HeaderReader(stream).load() for _ in range(4))
    at = stream.tell()
    if version != _VERSION or not isinstance(system, dict) or system.get("little_endian") is not True:
        raise RefusedPickleError("a tensor's bytes are of another version or byte order")
    if not isinstance(storage, tuple) or len(storage) != 2 or not isinstance(keys, list) or len(keys) != 1:
        raise RefusedPickleError("a tensor's bytes hold something else than numbers")
    dtype, count = storage
    written, at = int.from_bytes(payload[at : at + 8], "little"), at + 8
    if written != count or len(payload) - at != count * dtype.itemsize:
        raise RefusedPickleError("a tensor's bytes are damaged")
    return torch.from_numpy(np.frombuffer(payload, dtype, count, at).copy())


def _zip_format(payload: bytes) -> Tensor:
    """The numbers in a storage, as torch reads it with ``weights_only=True``."""
    with zipfile.ZipFile(io.BytesIO(payload)) as archive:
        if sum(info.file_size for info in archive.infolist()) > len(payload):
            raise RefusedPickleError("a tensor's bytes unpack to more than there are")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # typed storages are deprecated
        storage = torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
        if not isinstance(storage, torch.storage.TypedStorage):
            raise RefusedPickleError("a tensor's bytes hold something else than numbers")
        return torch.empty(0, dtype=storage.dtype).set_(storage.untyped())
