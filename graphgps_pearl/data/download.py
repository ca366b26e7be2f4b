"""Public files: fetched over verified TLS, checked, and renamed into place only when whole.

Nothing here runs unless a dataset that needs a download was asked for and its files are neither at
``dataset.path`` nor in ``dataset.dir``; ``dataset.source: path`` rules the network out altogether.
"""

from __future__ import annotations

import hashlib
import http.client
import logging
import shutil
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, TypeVar

from tqdm import tqdm

from graphgps_pearl.data.base import Source
from graphgps_pearl.data.cache import atomic_file
from graphgps_pearl.errors import ConfigError, DataError

log = logging.getLogger(__name__)

T = TypeVar("T")
_TIMEOUT = 60.0  # seconds without a byte
_CHUNK = 1 << 20


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


def fetch_file(url: str, target: Path, md5: str | None = None) -> None:
    """Download ``url`` to ``target``, whole and with the right checksum, or not at all."""
    by_hand = f"download it by hand to {target}, or set dataset.path"
    log.info("downloading %s", url)
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "graphgps_pearl"})
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer, atomic_file(target) as file:
            found = _copy(answer, file, target.name, url)
            if md5 is not None and found != md5:
                raise DataError(f"{url}: has checksum {found}, not {md5}: another or damaged; {by_hand}")
    except urllib.error.HTTPError as error:
        raise DataError(f"{url}: the server answers {error.code} {error.reason}; {by_hand}") from error
    except (urllib.error.URLError, TimeoutError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise DataError(f"{url}: cannot be reached ({reason}); {by_hand}") from error


def _copy(answer: http.client.HTTPResponse, file: BinaryIO, name: str, url: str) -> str:
    """Write the answer to the file and return its MD5; DataError if it ends early."""
    expected = int(answer.headers.get("Content-Length") or 0)
    received, digest = 0, hashlib.md5(usedforsecurity=False)
    with tqdm(total=expected or None, unit="B", unit_scale=True, disable=None, leave=False, desc=name) as bar:
        while chunk := _receive(answer, url, received):
            file.write(chunk)
            digest.update(chunk)
            received += len(chunk)
            bar.update(len(chunk))
    if received < expected:
        raise DataError(f"{url}: broke off after {received:,} of {expected:,} bytes; run the command again")
    return digest.hexdigest()


def _receive(answer: http.client.HTTPResponse, url: str, received: int) -> bytes:
    try:
        return answer.read(_CHUNK)
    except (OSError, http.client.HTTPException) as error:
        raise DataError(
            f"{url}: broke off after {received:,} bytes ({error}); run the command again"
        ) from error


def unzip(archive: Path, members: Mapping[str, Path]) -> None:
    """Take the named members out of an archive to the named places; paths inside the archive are never
    used."""
    try:
        with zipfile.ZipFile(archive) as opened:
            for member, target in members.items():
                with opened.open(member) as packed, atomic_file(target) as file:
                    shutil.copyfileobj(packed, file)
    except KeyError as error:
        raise DataError(f"{archive}: has no file {error.args[0]}; delete it and try again") from error
    except zipfile.BadZipFile as error:
        raise DataError(f"{archive}: is damaged ({error}); delete it and try again") from error
