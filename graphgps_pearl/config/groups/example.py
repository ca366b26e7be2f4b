"""Upstream's example of a group, which its saved configs carry."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {"example_arg": Key("example", "Upstream's example of a key.", used=False)}
