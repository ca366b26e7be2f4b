"""Which :class:`~graphgps_pearl.data.base.Source` answers to ``dataset.format`` and ``dataset.name``.

A new dataset is one new file in ``graphgps_pearl/data/datasets`` with one decorator::

    @register_dataset("embedded", "my-molecules")
    class MyMolecules(Source): ...
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from yacs.config import CfgNode

from graphgps_pearl.data.base import Source
from graphgps_pearl.errors import ConfigError

_SOURCES: dict[tuple[str, str], type[Source]] = {}
ANY_NAME = "*"

S = TypeVar("S", bound=type[Source])


def register_dataset(data_format: str, *names: str) -> Callable[[S], S]:
    """Register a source under a format and its names; no name means any. Registering it again changes
    nothing."""

    def add(source: S) -> S:
        for name in names or (ANY_NAME,):
            held = _SOURCES.setdefault((data_format, name), source)
            if (held.__module__, held.__qualname__) != (source.__module__, source.__qualname__):
                raise KeyError(f"dataset {data_format}/{name} is already registered by {held.__module__}")
        return source

    return add


@cache
def _import_datasets() -> None:
    from graphgps_pearl.data import datasets

    for module in pkgutil.iter_modules(datasets.__path__):
        importlib.import_module(f"{datasets.__name__}.{module.name}")


def available() -> list[tuple[str, str]]:
    """All (format, name) pairs that have a source, sorted; a name ``*`` stands for any."""
    _import_datasets()
    return sorted(_SOURCES)


def find(cfg: CfgNode) -> Source:
    """The source for ``cfg.dataset``: ours, else one made of GraphGym's registered loaders, else
    ConfigError."""
    from graphgps_pearl.data.graphgym import GraphGymSource, has_loaders

    _import_datasets()
    data_format, name = cfg.dataset.format, cfg.dataset.name
    source = _SOURCES.get((data_format, name)) or _SOURCES.get((data_format, ANY_NAME))
    if source is not None:
        return source(cfg)
    if has_loaders():
        return GraphGymSource(cfg)
    raise ConfigError(_unknown(data_format, name))


def _unknown(data_format: str, name: str) -> str:
    formats = sorted({known for known, _ in _SOURCES})
    names = sorted(known for known_format, known in _SOURCES if known_format == data_format)
    key, value, choices, where = "name", name, names, f" for format {data_format}"
    if data_format not in formats:
        key, value, choices, where = "format", data_format, formats, ""
    near = difflib.get_close_matches(value, choices, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    return f"dataset.{key}: {value!r} is not known{where}{hint}; known are {', '.join(choices)}"
