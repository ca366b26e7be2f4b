"""Memory."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {"inplace": Key(False, "Activations in place.", used=False)}
