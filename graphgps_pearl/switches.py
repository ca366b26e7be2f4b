"""Switches that hold for the whole process.

Kernels are the optional fast paths in ``*/kernels/``. Each gives what the plain code gives, faster or in less
memory. The environment variable ``GRAPHGPS_PEARL_KERNELS=0`` switches them off, and so does
:func:`use_kernels` for a block of code: to read, debug or test the plain path.
``GRAPHGPS_PEARL_KERNELS=torch`` keeps those that are written in torch and compiles nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# A plain global, not a context variable: autograd may run a backward pass in a thread of its own.
_setting = os.environ.get("GRAPHGPS_PEARL_KERNELS", "1").strip().lower()
_enabled, _native = _setting not in ("0", "false", "off"), _setting != "torch"


def kernels_enabled() -> bool:
    """Whether fast paths may be taken; to be read in each forward pass.

    >>> with use_kernels(False):
    ...     kernels_enabled()
    False
    """
    return _enabled


def native_enabled() -> bool:
    """Whether fast paths may be compiled ones."""
    return _enabled and _native


@contextmanager
def use_kernels(enabled: bool, native: bool = True) -> Iterator[None]:
    """Switch the kernels on or off inside a ``with`` block; ``native=False``: none that are compiled."""
    global _enabled, _native
    before, (_enabled, _native) = (_enabled, _native), (enabled, native)
    try:
        yield
    finally:
        _enabled, _native = before
