"""Prepared data on disk: one verified file per key (:mod:`graphgps_pearl.files`), read without running code.

The key is a hash of everything the graphs depend on. Two processes may prepare the same key at once: each
writes its own temporary file, the contents are equal, and the last rename wins.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import warnings
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch
import xxhash
from torch import Tensor

from graphgps_pearl import files
from graphgps_pearl.data.base import BROKEN
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line

log = logging.getLogger(__name__)

LAYOUT = 2  # raise it when the files' layout changes
_STALE_SECONDS = 86_400.0
_MMAP_BYTES = 1 << 30


def key_of(parts: dict[str, Any]) -> str:
    """A short hash of plain values; equal parts in any order give equal keys."""
    text = json.dumps({"layout": LAYOUT, **parts}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def write(target: Path, content: files.Content, *, verified: bool = False) -> None:
    """Write a file whole or not at all, ``verified`` with a checksum; a full disk is one line."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        files.remove_partial(target.parent, _STALE_SECONDS)
        (files.write_verified if verified else files.write_atomically)(target, content)
    except (OSError, RuntimeError) as error:
        # torch.save reports a write that failed as a RuntimeError of its zip writer.
        raise DataError(write_failed(target, error)) from error


def write_failed(target: Path, error: Exception) -> str:
    """What to say of a file that could not be written."""
    causes: list[BaseException | None] = [error, error.__context__]
    if any(isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT) for cause in causes):
        return f"{target}: the disk is full; free some space or put dataset.dir on another disk"
    return f"{target}: cannot be written ({first_line(error)}); is there space, and is dataset.dir writable?"


def digest(value: object) -> str:
    """A hash of nested plain values and tensors: their content, not how a file or a dict arranges it.

    It tells changes, not intent. XXH3 takes 3 ms per 100 MB.
    """
    hasher = xxhash.xxh3_128()
    _feed(hasher, value)
    return hasher.hexdigest()


def _feed(hasher: xxhash.xxh3_128, value: object) -> None:
    if isinstance(value, Tensor):
        if not value.is_contiguous():  # copying it could take any amount of memory: strides may be 0
            raise ValueError("a tensor that is not contiguous")
        _mark(hasher, f"tensor {value.dtype} {list(value.shape)}")
        hasher.update(value.reshape(-1).view(torch.uint8).numpy().data)
    elif isinstance(value, dict):
        _mark(hasher, f"dict {len(value)}")
        for key in sorted(value, key=repr):
            _feed(hasher, key)
            _feed(hasher, value[key])
    elif isinstance(value, list | tuple):
        _mark(hasher, f"{type(value).__name__} {len(value)}")
        for part in value:
            _feed(hasher, part)
    else:
        text = repr(value)
        _mark(hasher, f"{type(value).__name__} {len(text)} {text}")


def _mark(hasher: xxhash.xxh3_128, text: str) -> None:
    hasher.update(text.encode("utf-8", "surrogatepass") + b";")


def save(state: dict[str, Any], target: Path) -> None:
    """Write plain tensors and values."""
    write(target, lambda file: torch.save(state, file), verified=True)


def load(target: Path, keys: Iterable[str] = ()) -> dict[str, Any] | None:
    """Read what :func:`save` wrote, or None (with a line in the log) where there is nothing usable.

    ``keys`` must all be there. Nothing is read of a file whose checksum does not hold."""
    if not target.is_file():
        return None
    try:
        files.verify(target)
        large = target.stat().st_size > _MMAP_BYTES
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch's remarks on files that are not its own
            state = torch.load(target, map_location="cpu", weights_only=True, mmap=large)
        if not isinstance(state, dict) or not set(keys) <= set(state):
            raise ValueError("it holds something else")
    except (OSError, RecursionError, DataError, *BROKEN) as error:
        log.warning("%s; preparing again", error if isinstance(error, DataError) else _foreign(target, error))
        return None
    return state


def _foreign(target: Path, error: Exception) -> str:
    return f"{target}: is not a cache of ours ({first_line(error)})"


def checksum(path: Path, memory: Path | None = None) -> str:
    """MD5 of a file, as the public sources give it (it tells files apart; it is no protection).

    ``memory`` names a JSON file that remembers checksums by size and modification time, since hashing
    a gigabyte takes seconds at every start.
    """
    stat = path.stat()
    stamp = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    known = _remembered(memory)
    if stamp in known:
        return known[stamp]
    with path.open("rb") as file:
        md5 = hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()
    if memory is not None and stat.st_size > 1 << 22:
        known = {**_remembered(memory), stamp: md5}
        with contextlib.suppress(DataError):  # it only saves time, and prepared data may be read-only
            write(memory, json.dumps(known, indent=1), verified=True)
    return md5


def _remembered(memory: Path | None) -> dict[str, str]:
    if memory is None or not memory.is_file():
        return {}
    try:
        known = json.loads(files.read_verified(memory))
    except (OSError, ValueError, DataError):
        return {}  # damaged: the files are read again
    return known if isinstance(known, dict) else {}
