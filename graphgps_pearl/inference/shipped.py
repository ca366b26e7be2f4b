"""Where models are found, without importing torch."""

from __future__ import annotations

from pathlib import Path

from graphgps_pearl.config import shipped

#: The models that come with the package, one folder each.
SHIPPED = Path(__file__).parent / "models"


def shipped_names() -> list[str]:
    """Names that ``load`` and the commands take for shipped models."""
    return sorted(file.parent.name for file in SHIPPED.glob("*/model.json"))


def is_config(path: Path) -> bool:
    """Whether a path is a config file, or the name of a shipped config, rather than a model."""
    if path.suffix in shipped.SUFFIXES:
        return True
    return not path.exists() and str(path) not in shipped_names() and str(path) in shipped.names()
