"""One process at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import filelock

from graphgps_pearl.errors import UserError
from graphgps_pearl.files import is_full


@contextlib.contextmanager
def exclusive(path: Path, busy: str) -> Iterator[None]:
    """Hold a lock on a file, or say that another process is ``busy``; the system frees that of a dead one."""
    lock = filelock.FileLock(path, timeout=0)  # forked children, such as data workers, do not inherit it
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout:
        raise UserError(busy) from None
    except OSError as error:
        if is_full(error):
            raise
        raise UserError(
            f"{path.parent}: cannot be made or written ({error.strerror}); choose another out_dir"
        ) from error
    try:
        yield
    finally:
        lock.release()
