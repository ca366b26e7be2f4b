"""Members of downloaded zip archives."""

from __future__ import annotations

import shutil
import zipfile
import zlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from graphgps_pearl.data import cache
from graphgps_pearl.errors import DataError
from graphgps_pearl.unpacking import Bounded


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
