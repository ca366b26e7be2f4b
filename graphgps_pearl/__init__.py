"""PEARL positional encodings (ICLR 2025) for GPS graph transformers.

Importing the package registers nothing and loads neither torch nor PyG; :func:`register` fills
GraphGym's registry, :func:`load` opens a trained model, and ``graphgps_pearl.pearl`` has the encodings as
plain PyTorch modules.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from graphgps_pearl.extras import named_extras

if TYPE_CHECKING:
    from graphgps_pearl.inference.model import Model

__version__ = "0.1.0"
__all__ = ["__version__", "load", "register"]


def __getattr__(name: str) -> ModuleType:
    """``graphgps_pearl.pearl`` and ``graphgps_pearl.config`` after ``import graphgps_pearl`` alone."""
    if name in ("pearl", "config"):
        with named_extras():
            return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(path: str | Path, device: str | None = None) -> Model:
    """A trained model, ready for ``predict(["CCO"])``; see :mod:`graphgps_pearl.inference.loading`."""
    with named_extras():
        from graphgps_pearl.inference.loading import load as load_model

    return load_model(path, device)


def register(only: Iterable[str] | None = None) -> None:
    """Fill the free names of GraphGym's registry with ours; see :mod:`graphgps_pearl.registry`."""
    with named_extras():
        from graphgps_pearl.registry import register as fill

        fill(only)
