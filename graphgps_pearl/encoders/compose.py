"""Names of the form ``A+B+C``: at most one data encoder, which comes first, and any number of encodings.

Widths are those of GraphGPS. An encoding takes its ``dim_pe`` columns of ``batch.x`` (none if it is injected
into every layer or acts on edges); the part in front of it is built for what is left. For
``TypeDictNode+LapPE+RWSE`` at 64 columns with ``dim_pe`` 16 and 20: ``TypeDictNode(28)``, ``LapPE(44,
expand_x=False)``, ``RWSE(64, expand_x=False)``.

A part is anything in GraphGym's registry, or of ours. A third party's encoding is recognised by its
``expand_x`` argument or by its config group ``posenc_<name>``, whose ``dim_pe`` (or else the class's) says
how many columns it takes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from torch import nn
from torch_geometric.data import Batch
from torch_geometric.graphgym import register
from torch_geometric.graphgym.config import cfg as active_cfg
from torch_geometric.transforms import BaseTransform

from graphgps_pearl import config
from graphgps_pearl.encoders.base import PosEncEncoder, WidthError
from graphgps_pearl.encoders.table import EDGE_ENCODERS, NODE_ENCODERS
from graphgps_pearl.errors import ConfigError


def find(
    name: str, key: str, registered: Mapping[str, Any], ours: Mapping[str, Any]
) -> Callable[..., nn.Module]:
    """The encoder of this name; the registry goes first, since a name that somebody else took is theirs."""
    if name in registered:
        return registered[name]
    if name in ours:
        return ours[name]
    known = sorted({*registered, *ours} - {n for n in registered if "+" in n})
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ConfigError(f"{key}: there is no encoder {name!r}{hint} (there are {', '.join(known)})")


def find_node_encoder(name: str) -> Callable[..., nn.Module]:
    """One node encoder, not a composition."""
    return find(name, "dataset.node_encoder_name", register.node_encoder_dict, NODE_ENCODERS)


def find_edge_encoder(name: str) -> Callable[..., nn.Module]:
    """One edge encoder."""
    return find(name, "dataset.edge_encoder_name", register.edge_encoder_dict, EDGE_ENCODERS)


@dataclass(frozen=True)
class Part:
    """One name of a composition, what builds it, and what it needs."""

    name: str
    factory: Callable[..., nn.Module]
    is_encoding: bool
    columns: int = 0  # of batch.x
    injected: int = 0  # into every layer
    transforms: tuple[BaseTransform, ...] = ()

    def build(self, dim_emb: int, first: bool, cfg: Any) -> nn.Module:
        """The module that brings ``batch.x`` to ``dim_emb`` columns."""
        expand = {} if first or not _takes(self.factory, "expand_x") else {"expand_x": False}
        return build_encoder(self.factory, dim_emb, cfg, **expand)


def build_encoder(factory: Callable[..., nn.Module], dim_emb: int, cfg: Any, **more: Any) -> nn.Module:
    """An encoder under a config: ours get it as an argument, others find it as GraphGym's active one."""
    if factory not in (*NODE_ENCODERS.values(), *EDGE_ENCODERS.values()):
        if cfg is not active_cfg:
            config.activate(cfg)
    elif _takes(factory, "cfg"):
        more["cfg"] = cfg
    return factory(dim_emb, **more)


def _takes(factory: Callable[..., nn.Module], argument: str) -> bool:
    return argument in inspect.signature(factory).parameters


def _part(name: str, cfg: Any) -> Part:
    factory = find_node_encoder(name)
    settings = cfg.get(f"posenc_{name}")
    if settings is None and not _takes(factory, "expand_x"):
        return Part(name, factory, is_encoding=False)
    if isinstance(factory, type) and issubclass(factory, PosEncEncoder):
        columns, injected = factory.columns(settings), factory.injected_columns(settings)
    else:
        columns, injected = getattr(settings, "dim_pe", getattr(factory, "dim_pe", 0)), 0
    transforms: list[BaseTransform] = getattr(factory, "transforms", lambda settings: [])(settings)
    return Part(name, factory, True, columns, injected, tuple(transforms))


def resolve(composition: str, cfg: Any) -> list[Part]:
    """The parts of ``A+B+C`` under a config, in order; what cannot be composed is a :class:`ConfigError`."""
    where = f"dataset.node_encoder_name is {composition!r}"
    names = composition.split("+")
    if "" in names:
        raise ConfigError(f"{where}: write encoder names with a single + between them")
    if len(set(names)) < len(names):
        raise ConfigError(f"{where}: each encoder may be named once")
    parts = [_part(name, cfg) for name in names]
    for part in parts[1:]:
        if not part.is_encoding:
            raise ConfigError(
                f"{where}: {part.name} reads the data, so it comes first, and there is at most one such"
            )
    return parts


def required_by(parts: Iterable[Part]) -> list[BaseTransform]:
    """The transforms that the parts need, each once."""
    return list({repr(t): t for part in parts for t in part.transforms}.values())


class ComposedNodeEncoder(nn.Module):
    """All parts of a composition, one after the other.

    Args:
        composition: ``A``, ``A+B``, ``A+B+C``, ...
        dim_emb: Width of ``batch.x`` after the last part.
        cfg: The config; None = GraphGym's.
    """

    def __init__(self, composition: str, dim_emb: int, cfg: Any = None) -> None:
        super().__init__()
        cfg = active_cfg if cfg is None else cfg
        parts = resolve(composition, cfg)
        widths = [dim_emb]
        for part in reversed(parts[1:]):
            widths.insert(0, widths[0] - part.columns)
        least = parts[0].columns if parts[0].is_encoding else 1
        if widths[0] < least:
            asked = " + ".join(f"{p.name} {p.columns}" for p in parts if p.columns)
            raise WidthError(
                f"{composition}: of {dim_emb} columns, the encodings' dim_pe leave too few ({asked})"
            )
        self.encoders = nn.ModuleList(
            part.build(width, i == 0, cfg) for i, (part, width) in enumerate(zip(parts, widths, strict=True))
        )

    def forward(self, batch: Batch) -> Batch:
        """Run the parts in order."""
        for encoder in self.encoders:
            batch = encoder(batch)
        return batch
