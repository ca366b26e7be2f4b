"""Public files: found, or fetched over verified TLS by pooch, checked, unpacked, and renamed when whole.

Nothing here runs unless a dataset that needs a download was asked for and its files are neither at
``dataset.path`` nor in ``dataset.dir``; ``dataset.source: path`` rules the network out altogether.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import filelock

from graphgps_pearl.data import cache
from graphgps_pearl.data.base import Source
from graphgps_pearl.errors import ConfigError, DataError
from graphgps_pearl.escaping import first_line
from graphgps_pearl.unpacking import Bounded

log = logging.getLogger(__name__)

T = TypeVar("T")
_TIMEOUT = 60.0  # seconds without a byte


def locate(
    source: Source,
    folder: Path,
    look: Callable[[Path], T | None],
    fetch: Callable[[Path], None] | None,
    wanted: str,
) -> T:
    """What ``look`` finds at ``dataset.path``, else in ``folder``, else in ``folder`` after ``fetch``.

    ``wanted`` says which files are looked for, for the error's sake.
    """
    kind, path = source.cfg.dataset.source, source.path()
    if kind == "embedded":
        raise ConfigError(f"dataset.source: {source.spec().name} is not embedded; use auto, path or download")
    if kind == "path" and path is None:
        raise ConfigError("dataset.path: is empty, but dataset.source is path; name the file or folder")
    if path is not None and kind != "download":
        found = look(path)
        if found is None:
            there = "does not exist" if not path.exists() else "does not have the files"
            raise DataError(f"dataset.path: {path} {there}; wanted: {wanted}")
        return found
    found = look(folder)
    if found is None and fetch is not None:
        fetch(folder)
        found = look(folder)
    if found is None:
        raise DataError(f"{folder}: {wanted}, or set dataset.path to where they are")
    return found


def files_in(folders: Iterable[Path], names: Mapping[str, str]) -> dict[str, Path] | None:
    """Key -> file for key -> name, in the first of the folders that has all of them."""
    for folder in folders:
        files = {key: folder / name for key, name in names.items()}
        if all(file.is_file() for file in files.values()):
            return files
    return None


def checksums(source: Source, files: Mapping[str, Path]) -> dict[str, Any]:
    """MD5 of large files, which ``dataset.dir`` remembers."""
    memory = source.dir / "prepared" / "checksums.json"
    return {key: cache.checksum(file, memory) for key, file in files.items()}


def fetch_zip(
    url: str, archive: Path, known_hash: str | None, members: Mapping[str, Path], most_bytes: int
) -> None:
    """:func:`fetch_file`, and :func:`unzip` what it brings, unless another process has just done so."""
    with _alone(archive):
        if all(target.is_file() for target in members.values()):
            return
        fetch_file(url, archive, known_hash)
        unzip(archive, members, most_bytes)
        archive.unlink()


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Hold a lock next to a file: a process that is done with it would remove it under another one."""
    lock = filelock.FileLock(target.with_name(f".{target.name}.lock"))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            log.info("waiting for another process that downloads %s", target)
            lock.acquire()
    except OSError as error:
        raise DataError(cache.write_failed(target, error)) from error
    try:
        yield
    finally:
        lock.release()


def unzip(archive: Path, members: Mapping[str, Path], most_bytes: int) -> None:
    """Take the named members out of a zip to the named targets; paths inside the archive are never used.

    DataError if they unpack to more than ``most_bytes`` together.
    """
    left = most_bytes
    try:
        with zipfile.ZipFile(archive) as opened:
            for member, target in members.items():
                with opened.open(member) as packed, Bounded(packed, left, archive) as bounded:
                    cache.write(target, partial(shutil.copyfileobj, bounded))
                left -= target.stat().st_size
    except KeyError as error:
        raise DataError(f"{archive}: has no file {error.args[0]}; delete it and try again") from error
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, RuntimeError) as error:
        raise DataError(f"{archive}: is damaged ({error}); delete it and try again") from error


def fetch_file(url: str, target: Path, known_hash: str | None) -> None:
    """Download ``url`` to ``target``, whole and with the right checksum, or not at all.

    ``known_hash`` is ``md5:...`` or ``sha256:...``; None only where the publisher names none and the content
    is checked after reading. Then a line says what the file's is. A file that is there already is used.
    """
    import pooch
    import requests

    by_hand = f"download it by hand to {target}, or set dataset.path"
    log.info("downloading %s", url)
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(
            url,
            known_hash,
            fname=target.name,
            path=target.parent,
            downloader=pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=_TIMEOUT),
        )
    except requests.HTTPError as error:
        answer = error.response
        status = f"{answer.status_code} {answer.reason}" if answer is not None else "with an error"
        raise DataError(f"{url}: the server answers {status}; {by_hand}") from error
    except (requests.ConnectionError, requests.Timeout) as error:
        raise DataError(f"{url}: cannot be reached ({_reason(error)}); {by_hand}") from error
    except requests.RequestException as error:
        raise DataError(
            f"{url}: broke off ({_reason(error)}); run the command again, or {by_hand}"
        ) from error
    except ValueError as error:  # pooch's for another hash
        raise DataError(f"{url}: has another checksum than {known_hash}; {by_hand}") from error
    except OSError as error:
        raise DataError(cache.write_failed(target, error)) from error
    if known_hash is None:
        log.info(
            "%s has no published checksum, its content is checked instead; this one is sha256:%s; "
            "to use a copy that you trust, put it at %s",
            url,
            pooch.file_hash(str(target)),
            target,
        )


def _reason(error: Exception) -> str:
    """The innermost reason in a chain of libraries' errors."""
    inner: BaseException = error
    while inner.__cause__ or inner.__context__:
        inner = inner.__cause__ or inner.__context__ or inner
    return first_line(inner)
