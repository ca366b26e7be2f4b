"""PEARL positional encodings (ICLR 2025) for GPS graph transformers.

Importing the package registers nothing and loads neither torch nor PyG; :func:`register` fills
GraphGym's registry, :func:`load` opens a trained model, and ``graphgps_pearl.pearl`` has the encodings as
plain PyTorch modules. ``GPS``, ``GPSLayer``, ``BPEARL`` and ``RPEARL`` make a network without a config;
``AddPEARL`` is a PyG transform that stores encodings with the graphs.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgps_pearl.extras import named_extras

if TYPE_CHECKING:
    from graphgps_pearl.inference.model import Model
    from graphgps_pearl.layers import GPSLayer
    from graphgps_pearl.networks import GPS
    from graphgps_pearl.pearl import BPEARL, RPEARL
    from graphgps_pearl.transforms import AddPEARL

__version__ = "0.1.0"
__all__ = ["BPEARL", "GPS", "RPEARL", "AddPEARL", "GPSLayer", "__version__", "load", "register"]

_MODULES = {
    "AddPEARL": "transforms",
    "BPEARL": "pearl",
    "GPS": "networks",
    "GPSLayer": "layers",
    "RPEARL": "pearl",
}


def __getattr__(name: str) -> Any:
    """Modules and classes that need torch, loaded at their first use."""
    with named_extras():
        if name in ("pearl", "config", "layers", "networks", "testing", "transforms"):
            return import_module(f"{__name__}.{name}")
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
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
