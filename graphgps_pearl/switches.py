"""Switches that hold for the whole process.

Kernels are the optional fast paths in ``*/kernels/``. Each gives what the plain code gives, faster or in less
memory. The environment variable ``GRAPHGPS_PEARL_KERNELS=0`` switches them off, and so does
:func:`use_kernels` for a block of code: to read, debug or test the plain path.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

# A plain global, not a context variable: autograd may run a backward pass in a thread of its own.
_enabled = os.environ.get("GRAPHGPS_PEARL_KERNELS", "1").strip().lower() not in ("0", "false", "off")


def kernels_enabled() -> bool:
    """Whether fast paths may be taken; to be read in each forward pass.

    >>> with use_kernels(False):
    ...     kernels_enabled()
    False
    """
    return _enabled


@contextmanager
def use_kernels(enabled: bool) -> Iterator[None]:
    """Switch the kernels on or off inside a ``with`` block."""
    global _enabled
    before, _enabled = _enabled, enabled
    try:
        yield
    finally:
        _enabled = before
