"""Batch normalisation."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "eps": Key(1e-5, "Added to the variance.", above=0),
    "mom": Key(0.1, "Weight of the newest batch in the running statistics.", min=0, max=1),
}
