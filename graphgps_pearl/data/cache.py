"""Prepared data on disk: one file per key, written to a temporary name and renamed, read without running
code.

The key is a hash of everything the graphs depend on. Two processes may prepare the same key at once: each
writes its own temporary file, the contents are equal, and the last rename wins.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch

from graphgps_pearl.data.base import BROKEN, first_line
from graphgps_pearl.errors import DataError

log = logging.getLogger(__name__)

LAYOUT = 1  # raise it when the files' layout changes
_STALE_SECONDS = 86_400.0
_MMAP_BYTES = 1 << 30


def key_of(parts: dict[str, Any]) -> str:
    """A short hash of plain values; equal parts in any order give equal keys."""
    text = json.dumps({"layout": LAYOUT, **parts}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name whole or not at all; a full disk is one line."""
    temporary = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target.parent)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(target)
    except (OSError, RuntimeError) as error:
        # torch.save reports a write that failed as a RuntimeError of its zip writer.
        raise DataError(_write_failed(target, error)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _write_failed(target: Path, error: Exception) -> str:
    causes: list[BaseException | None] = [error, error.__context__]
    if any(isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT) for cause in causes):
        return f"{target}: the disk is full; free some space or put dataset.dir on another disk"
    return f"{target}: cannot be written ({first_line(error)}); is there space, and is dataset.dir writable?"


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed while writing left behind, a day later."""
    for leftover in folder.glob(".*.part"):
        try:
            if time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
                leftover.unlink(missing_ok=True)
        except OSError:
            continue  # another process was faster


def save(state: dict[str, Any], target: Path) -> None:
    """Write plain tensors and values, atomically."""
    with atomic_file(target) as file:
        torch.save(state, file)


def load(target: Path, keys: Iterable[str] = ()) -> dict[str, Any] | None:
    """Read what :func:`save` wrote, or None (with a line in the log) where there is nothing usable.

    ``keys`` must all be there."""
    if not target.is_file():
        return None
    try:
        large = target.stat().st_size > _MMAP_BYTES
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch's remarks on files that are not its own
            state = torch.load(target, map_location="cpu", weights_only=True, mmap=large)
    except (OSError, *BROKEN) as error:
        log.warning("%s: not a cache of ours (%s); preparing again", target, first_line(error))
        return None
    if not isinstance(state, dict) or not set(keys) <= set(state):
        log.warning("%s: not a cache of ours; preparing again", target)
        return None
    return state


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
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            digest.update(chunk)
    if memory is not None and stat.st_size > 1 << 22:
        with atomic_file(memory) as file:
            file.write(json.dumps({**_remembered(memory), stamp: digest.hexdigest()}, indent=1).encode())
    return digest.hexdigest()


def _remembered(memory: Path | None) -> dict[str, str]:
    if memory is None or not memory.is_file():
        return {}
    try:
        known = json.loads(memory.read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
