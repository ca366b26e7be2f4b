"""Our names in GraphGym's registry: explicit, idempotent, and only where a name is free.

``import graphgps_pearl`` registers nothing. :func:`register` adds what this package has;
``register(only=("RPEARL", "BPEARL"))`` adds these encoders and their compositions with the encoders that
upstream GraphGPS has, and nothing else, so it can stand beside upstream, before or after ``import
graphgps``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from importlib.abc import MetaPathFinder
from itertools import permutations
from typing import Any

from torch_geometric.graphgym import register as graphgym
from torch_geometric.graphgym.config import cfg as active_cfg
from yacs.config import CfgNode

from graphgps_pearl.config.schema import SCHEMA, put
from graphgps_pearl.encoders import POSITIONAL_ENCODERS, ComposedNodeEncoder
from graphgps_pearl.errors import ConfigError

# Keys of what only networks of ours can take.
NOT_AT_THE_INPUT = ("inject", "pair_bias", "pair_edges")
# Upstream looks the whole name of a composition up, so names are registered ahead, for these parts.
UPSTREAM_DATA_ENCODERS = ("Atom", "ASTNode", "PPANode", "TypeDictNode", "VOCNode", "LinearNode")
UPSTREAM_ENCODINGS = (
    "LapPE",
    "RWSE",
    "HKdiagSE",
    "ElstaticSE",
    "SignNet",
    "EquivStableLapPE",
    "GraphormerBias",
)


def register(only: Iterable[str] | None = None) -> None:
    """Fill the free names of GraphGym's registry with ours; what is taken stays as it is.

    Args:
        only: Names of encodings, for use beside upstream GraphGPS. Left out, everything is registered; then
            upstream cannot be imported afterwards in the same process (its own names would be taken), and
            says so.
    """
    if only is not None:
        _register_encodings(tuple(only))
        return
    # Here and not above: beside upstream, none of this is needed.
    from graphgps_pearl import networks

    for name in POSITIONAL_ENCODERS:
        _fill(graphgym.config_dict, f"posenc_{name}", partial(_add_group, name=name))
    networks.offer_parts()
    for name, network in networks.NETWORKS.items():
        _fill(graphgym.network_dict, name, partial(network, active_cfg))
    if "graphgps" not in sys.modules and not any(isinstance(f, _UpstreamTooLate) for f in sys.meta_path):
        sys.meta_path.insert(0, _UpstreamTooLate())


def _register_encodings(names: tuple[str, ...]) -> None:
    for name in names:
        if name not in POSITIONAL_ENCODERS:
            raise ConfigError(f"register(only=...): {name!r} is none of {', '.join(POSITIONAL_ENCODERS)}")
        _fill(graphgym.config_dict, f"posenc_{name}", partial(_add_group, name=name, inject=False))
        _fill(graphgym.node_encoder_dict, name, POSITIONAL_ENCODERS[name])
    others = [name for name in UPSTREAM_ENCODINGS if name not in names]
    for count in (1, 2):
        for encodings in permutations((*names, *others), count):
            if set(encodings) & set(names):
                for data_encoder in UPSTREAM_DATA_ENCODERS:
                    register_composition("+".join((data_encoder, *encodings)))


def register_composition(name: str) -> None:
    """Register a composed name such as ``Atom+RWSE+LapPE+BPEARL``; its parts are found when it is built."""
    _fill(graphgym.node_encoder_dict, name, partial(ComposedNodeEncoder, name))


def _fill(registry: dict[str, Any], name: str, module: Any) -> None:
    registry.setdefault(name, module)


def _add_group(cfg: CfgNode, name: str, inject: bool = True) -> None:
    """Put ``posenc_<name>`` with its defaults into GraphGym's config, unless it is there.

    Upstream's networks take an encoding at the input alone, so beside upstream the other ways' keys do not
    exist.
    """
    group = f"posenc_{name}"
    if group in cfg:
        return
    for key, entry in SCHEMA.items():
        if key.startswith(f"{group}.") and (inject or key.rpartition(".")[2] not in NOT_AT_THE_INPUT):
            put(cfg, key, list(entry.default) if isinstance(entry.default, list) else entry.default)


class _UpstreamTooLate(MetaPathFinder):
    """Says in one line what ``import graphgps`` would say with a KeyError from deep inside."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        """Refuse ``graphgps``; any other module is found as usual."""
        if fullname == "graphgps":
            raise ImportError(
                "graphgps_pearl.register() has taken names that graphgps registers itself: "
                "import graphgps first, or call graphgps_pearl.register(only=('RPEARL', 'BPEARL')) instead"
            )
