"""Where models are found, without importing torch."""

from __future__ import annotations

from pathlib import Path

#: The models that come with the package, one folder each.
SHIPPED = Path(__file__).parent / "models"


def shipped_names() -> list[str]:
    """Names that ``load`` and the commands take for shipped models."""
    return sorted(file.parent.name for file in SHIPPED.glob("*/model.json"))


def is_config(path: Path) -> bool:
    """Whether a path is a config file rather than a model."""
    return path.suffix in (".yaml", ".yml")
