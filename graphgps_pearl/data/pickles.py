"""Pickles of public datasets, read without running what is in them, in memory bounded by the file's size.

A pickle is a program. This reader knows the handful of names that the public files need (tensors, arrays,
sparse matrices, dicts), puts a stand-in of its own in the place of each, and refuses every other one.
Tensors are decoded only when asked for, since of ZINC's quarter million molecules the benchmark takes 12,000.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy._core.multiarray import _reconstruct
from numpy.typing import NDArray
from torch import Tensor

from graphgps_pearl.data.base import BROKEN
from graphgps_pearl.data.pickled_tensors import (
    BoundedUnpickler,
    PickledArray,
    PickledMatrix,
    PickledNumberType,
    PickledStorage,
    PickledTensor,
    RefusedPickleError,
)
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line


def _empty_dict() -> OrderedDict[str, Any]:
    """torch's hooks of a tensor, of which there are none."""
    return OrderedDict()


def _not_called(*_: object) -> None:
    raise RefusedPickleError("an array of another kind than numpy's own")


def _plain_dict(*_: object) -> dict[Any, Any]:
    """A dict whose values are lists unless they are there."""
    return {}


_STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): _empty_dict,
    ("torch._utils", "_rebuild_tensor_v2"): PickledTensor,
    ("torch.storage", "_load_from_bytes"): PickledStorage,
    ("numpy.core.multiarray", "_reconstruct"): PickledArray,
    ("numpy._core.multiarray", "_reconstruct"): PickledArray,
    ("numpy", "ndarray"): _not_called,  # only named, as an argument of _reconstruct
    ("numpy", "dtype"): PickledNumberType,
    **{(module, "csr_matrix"): PickledMatrix for module in ("scipy.sparse.csr", "scipy.sparse._csr")},
    ("collections", "defaultdict"): _plain_dict,
    **{(module, "list"): _not_called for module in ("__builtin__", "builtins")},  # of defaultdict(list)
}


class _Reader(BoundedUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _STAND_INS:
            raise RefusedPickleError(f"it asks for {module}.{name}, which no dataset needs, and was not run")
        return _STAND_INS[module, name]


def read_pickle(path: Path) -> Any:
    """Lists, dicts, numbers, strings and stand-ins for tensors and arrays; DataError for anything else."""
    try:
        # Python 2 wrote bytes as text.
        return _Reader(io.BytesIO(path.read_bytes()), encoding="latin1").load()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except BROKEN as error:
        raise DataError(f"{path}: no pickle of a dataset ({first_line(error)}); get it again") from error


def decode(value: object, path: Path, what: str) -> Tensor:
    """A tensor or array from :func:`read_pickle`; DataError naming ``what`` where it is neither, or
    damaged."""
    try:
        if isinstance(value, PickledTensor):
            return value.tensor()
        if isinstance(value, PickledArray | PickledMatrix):
            return torch.from_numpy(value.array())
    except BROKEN as error:
        raise DataError(f"{path}: {what} cannot be read ({first_line(error)}); get it again") from error
    raise DataError(f"{path}: {what} is a {type(value).__name__}, not a tensor; get it again")


def require_own_bytes(values: Iterable[object], path: Path) -> None:
    """DataError if tensors of a pickle have more elements together than the file has bytes: a few bytes can
    name one tensor any number of times."""
    elements, most = 0, path.stat().st_size
    for value in values:
        elements += value.numel() if isinstance(value, PickledTensor) else 0
        if elements > most:
            raise DataError(f"{path}: its tensors have more elements than the file has bytes; get it again")


def read_tensors(path: Path) -> list[Any]:
    """A list that ``torch.save`` wrote, of tensors in lists, tuples and dicts."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, *BROKEN) as error:
        raise DataError(f"{path}: no file of tensors ({first_line(error)}); download it again") from error
    if not isinstance(content, list | tuple):
        raise DataError(f"{path}: not a list of graphs; download it again")
    return list(content)


#: What numpy's arrays of whole numbers ask for in a file of ``torch.save``, by old and new names.
_NUMPY = [
    *((_reconstruct, f"numpy.{core}.multiarray._reconstruct") for core in ("core", "_core")),
    (np.ndarray, "numpy.ndarray"),
    (np.dtype, "numpy.dtype"),
    type(np.dtype(np.int64)),
]


def read_index_arrays(path: Path, names: Sequence[str]) -> dict[str, NDArray[np.int64]]:
    """A dict of split name -> whole numbers that ``torch.save`` wrote, as arrays, tensors or lists."""
    try:
        with torch.serialization.safe_globals(_NUMPY):  # type: ignore[arg-type]  # pairs are allowed too
            content = torch.load(path, map_location="cpu", weights_only=True)
        return {name: np.asarray(content[name], dtype=np.int64).reshape(-1) for name in names}
    except (OSError, *BROKEN) as error:
        raise DataError(
            f"{path}: not a split file with {', '.join(names)} ({first_line(error)}); get it again"
        ) from error


def read_index_lists(path: Path, names: Sequence[str]) -> dict[str, list[int]]:
    """A pickled dict of split name -> whole numbers (arrays or lists)."""
    content = read_pickle(path)
    if not isinstance(content, dict) or not set(names) <= set(content):
        raise DataError(f"{path}: not a split file, which is a dict with {', '.join(names)}")
    lists: dict[str, list[int]] = {}
    for name in names:
        held = content[name]
        numbers = held if isinstance(held, list) else decode(held, path, f"split {name!r}").tolist()
        if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
            raise DataError(f"{path}: split {name!r} is not a list of row numbers")
        lists[name] = numbers
    return lists
