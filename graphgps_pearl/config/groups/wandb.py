"""Weights & Biases in upstream GraphGPS; runs are logged to files and TensorBoard here."""

from __future__ import annotations

from graphgps_pearl.config.key import Key

KEYS = {
    "use": Key(False, "Log to Weights & Biases.", used=False),
    "entity": Key("gtransformers", "Team.", used=False),
    "project": Key("gtblueprint", "Project.", used=False),
    "name": Key("", "Name of the run.", used=False),
}
