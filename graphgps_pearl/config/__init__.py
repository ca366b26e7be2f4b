"""The config: GraphGPS's schema, strictly read, without torch.

A config file holds deltas from the defaults (:func:`defaults`), which are upstream GraphGPS's, so a GraphGPS
file means the same here. :data:`SCHEMA` has every key with its type, range and help, and
``docs/configuration.md`` is made from it. Nothing here imports torch or PyG but the body of :func:`activate`.
"""

from graphgps_pearl.config.key import Key
from graphgps_pearl.config.loading import activate, dump, load, override, parse, read, runs, unused
from graphgps_pearl.config.posenc import kernel_times
from graphgps_pearl.config.resolving import encodings
from graphgps_pearl.config.rules import check
from graphgps_pearl.config.schema import RENAMED, SCHEMA, add_group, defaults
from graphgps_pearl.config.shipped import find, shown
from graphgps_pearl.errors import ConfigError

__all__ = [
    "RENAMED",
    "SCHEMA",
    "ConfigError",
    "Key",
    "activate",
    "add_group",
    "check",
    "defaults",
    "dump",
    "encodings",
    "find",
    "kernel_times",
    "load",
    "override",
    "parse",
    "read",
    "runs",
    "shown",
    "unused",
]
