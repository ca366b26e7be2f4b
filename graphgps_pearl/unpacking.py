"""Packed files of others, unpacked no further than is plausible: a kilobyte can unpack to any size."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import IO

from graphgps_pearl.errors import DataError

# Tables of molecules shrink 3 to 20 times, a file of zeros 1,000 times.
_MOST_RATIO = 100
_ALWAYS_ALLOWED = 64 << 20


class Bounded(io.RawIOBase):
    """What another stream gives, up to a number of bytes; DataError beyond.

    Args:
        packed: the stream.
        most_bytes: how much it may give.
        file: for the error.
    """

    def __init__(self, packed: IO[bytes] | io.BufferedIOBase, most_bytes: int, file: Path) -> None:
        self._packed, self._most, self._file, self._count = packed, most_bytes, file, 0

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # the stub's Buffer is a protocol
        """Fill a buffer; how many bytes there were."""
        content = self._packed.read(len(buffer))
        self._count += len(content)
        if self._count > self._most:
            raise DataError(
                f"{self._file}: unpacks to more than {self._most / 1e6:,.0f} MB, which no dataset of its "
                "size does; get it again"
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        """Close the other stream too."""
        self._packed.close()
        super().close()


def open_gzip(file: Path) -> io.BufferedReader:
    """A gzip file's content as bytes, at most 100 times its size (64 MB are always allowed)."""
    most = max(_ALWAYS_ALLOWED, _MOST_RATIO * file.stat().st_size)
    return io.BufferedReader(Bounded(gzip.open(file, "rb"), most, file), 1 << 20)
