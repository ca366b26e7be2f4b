"""How much memory there is, and one line where something would not fit."""

from __future__ import annotations

from pathlib import Path

from graphgps_pearl.errors import DataError

_CGROUP = Path("/sys/fs/cgroup")
_SMALL = 2**28  # below, asking what is free is not worth its time


def megabytes(num_bytes: float) -> str:
    """Bytes as people say them.

    >>> megabytes(3_500_000), megabytes(5e9)
    ('4 MB', '5.0 GB')
    """
    return f"{num_bytes / 1e6:.0f} MB" if num_bytes < 1e9 else f"{num_bytes / 1e9:.1f} GB"


def free_bytes(device: str) -> int | None:
    """Free memory of the ``gpu``, or else of the machine or container; None if unknown."""
    if device == "gpu":
        import torch

        if torch.cuda.is_available():
            held = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # for torch's next tensors
            return torch.cuda.mem_get_info()[0] + held
    found = [_available(), _cgroup_free()]
    return min((f for f in found if f is not None), default=None)


def require_memory(num_bytes: float, device: str, what: str, remedy: str) -> None:
    """DataError where ``what`` needs more than is free, with the number of bytes and what to do."""
    if num_bytes < _SMALL:
        return
    free = free_bytes(device)
    if free is not None and num_bytes > free:
        from graphgps_pearl.compiled import release_buffers

        if release_buffers():
            free = free_bytes(device)
    if free is not None and num_bytes > free:
        raise DataError(f"{what} takes about {megabytes(num_bytes)}, {megabytes(free)} are free: {remedy}")


def _available() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _cgroup_free() -> int | None:
    try:
        limit, used = ((_CGROUP / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        details = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        cached = sum(int(details[f"{kind}_file"]) for kind in ("active", "inactive"))  # counted as used
        return int(limit) - int(used) + cached
    except (OSError, ValueError, KeyError):  # no such file, or "max": no limit
        return None
