"""PEARL positional encodings (ICLR 2025) for GPS graph transformers.

Importing the package registers nothing and loads neither torch nor PyG; :func:`register` fills
GraphGym's registry, and ``graphgps_pearl.pearl`` has the encodings as plain PyTorch modules.
"""

from __future__ import annotations

from collections.abc import Iterable

__version__ = "0.1.0"
__all__ = ["__version__", "register"]


def register(only: Iterable[str] | None = None) -> None:
    """Fill the free names of GraphGym's registry with ours; see :mod:`graphgps_pearl.registry`."""
    from graphgps_pearl.registry import register as fill

    fill(only)
