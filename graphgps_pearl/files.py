"""Files that are whole or absent, that are checked before they are used again, and that one process holds.

:func:`write_atomically` writes under a temporary name, forces the content to disk and renames.
:func:`write_verified` also appends a checksum of the content, which :func:`verify` and :func:`read_verified`
compare. The checksum is xxh3 with 128 bits: it detects damage, not intent, at several GB/s. It comes after
the content, where ``torch.load`` and zip readers ignore it, so one rename puts both in place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import filelock
import xxhash

from graphgps_pearl.errors import DataError, UserError

Content = bytes | str | Callable[[BinaryIO], object]

#: How the names of files end that are being written; what a killed process leaves has this ending.
PARTIAL = ".part"
_MARK = b"\nxxh3-128 "
_TRAILER = len(_MARK) + 32 + 1  # mark, hexadecimal digits, newline
_CHUNK = 1 << 22


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_UNWRITABLE = (
    *_FULL,
    *(errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ESTALE, errno.ENOENT, errno.ENOTDIR),
)


class DamagedFileError(DataError):
    """A file whose content is not what was written."""


def write_atomically(path: Path, content: Content) -> None:
    """Write bytes, text (UTF-8), or what a function writes into the open file; whole or not at all."""
    _write(path, content, verified=False)


def write_verified(path: Path, content: Content) -> str:
    """:func:`write_atomically` with a checksum at the end of the file; returns :func:`hash_of` it."""
    return _write(path, content, verified=True)


def _write(path: Path, content: Content, *, verified: bool) -> str:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{PARTIAL}")
    digest = ""
    try:
        with temporary.open("xb+") as file:
            fill(file, content)
            if verified:
                digest = _hash(file, file.seek(0, os.SEEK_END))
                file.seek(0, os.SEEK_END)
                file.write(_MARK + digest.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)
    return digest


def fill(file: BinaryIO, content: Content) -> None:
    """Write content into an open file."""
    if callable(content):
        content(file)
    else:
        file.write(content.encode() if isinstance(content, str) else content)


def sync_folder(folder: Path) -> None:
    """Force a rename in this folder to disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def remove_partial(folder: Path, older_than_seconds: float = 0.0) -> None:
    """Remove what processes that were killed while they wrote have left in a folder."""
    for leftover in folder.glob(f".*{PARTIAL}"):
        with contextlib.suppress(OSError):  # another process was faster
            if time.time() - leftover.stat().st_mtime >= older_than_seconds:
                leftover.unlink(missing_ok=True)


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk, a quota or a file is full."""
    return isinstance(error, OSError) and error.errno in _FULL


def write_failed(error: OSError) -> str | None:
    """Why a file cannot be written, in the system's words; None if the error is of another kind."""
    return (error.strerror or "unknown reason").lower() if error.errno in _UNWRITABLE else None


@contextlib.contextmanager
def write_errors_in_one_line(folder: Path) -> Iterator[None]:
    """Turn the system's errors for a folder that is full, read-only or gone into one line."""
    try:
        yield
    except OSError as error:
        reason = write_failed(error)
        inside = error.filename is None or Path(error.filename).is_relative_to(folder)
        if reason is None or not (inside or is_full(error)):
            raise
        if not folder.exists():
            raise UserError(
                f"{folder}: was removed or renamed during the run, which cannot go on; put it back, then the "
                "same command continues from what was saved"
            ) from error
        remedy = "free some space" if is_full(error) else "make it writable"
        raise UserError(
            f"{folder}: cannot be written, {reason}; what was saved before is whole. Please {remedy}, "
            "then the same command continues"
        ) from error


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


def hash_of(content: bytes) -> str:
    """32 hexadecimal digits that are equal for equal contents."""
    return xxhash.xxh3_128_hexdigest(content)


def verify(path: Path) -> str:
    """The content's hash, if it is the one that was written; else :class:`DamagedFileError`.

    A file that cannot be opened raises ``OSError``.
    """
    with path.open("rb") as file:
        size, written = _layout(file)
        return _checked(path, _hash(file, size), written)


def read_verified(path: Path) -> bytes:
    """The content that :func:`write_verified` has written; anything else is :class:`DamagedFileError`."""
    with path.open("rb") as file:
        size, written = _layout(file)
        content = file.read(size)
    _checked(path, hash_of(content), written)
    return content


def _checked(path: Path, digest: str, written: str | None) -> str:
    if written is None:
        raise DamagedFileError(
            f"{path}: is damaged, or was not written by graphgps_pearl (its checksum is missing)"
        )
    if digest != written:
        raise DamagedFileError(f"{path}: is damaged (its checksum differs)")
    return digest


def _layout(file: BinaryIO) -> tuple[int, str | None]:
    """(bytes of content, checksum or None); leaves the file at its start."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TRAILER))
    end = file.read()
    file.seek(0)
    if len(end) == _TRAILER and end.startswith(_MARK) and end.endswith(b"\n"):
        return size - _TRAILER, end[len(_MARK) : -1].decode("ascii", "replace")
    return size, None


def _hash(file: BinaryIO, size: int) -> str:
    digest = xxhash.xxh3_128()
    file.seek(0)
    while size > 0:
        chunk = file.read(min(_CHUNK, size))
        if not chunk:
            break
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest()
