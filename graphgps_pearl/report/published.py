"""Published figures, shown next to measured ones and never mixed with them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def dataset_title(config: Mapping[str, Any]) -> str | None:
    """The name under which a dataset's published figures stand, or None."""
    fmt, name = config["dataset"]["format"], config["dataset"]["name"].lower()
    if fmt == "csv":  # its name is the user's own
        return None
    if fmt == "PyG-ZINC" and name == "subset":
        return "ZINC-12k"
    if name in ("peptides-structural", "peptides-struct"):
        return "Peptides-struct"
    if name in ("peptides-functional", "peptides-func"):
        return "Peptides-func"
    if fmt == "DrugOOD":
        _, _, measurement, domain = name.split("_")
        return f"DrugOOD-{measurement}-{domain}"
    return {"REDDIT-BINARY": "REDDIT-B", "REDDIT-MULTI-5K": "REDDIT-M"}.get(config["dataset"]["name"])


#: Fewest and most epochs of the published runs on a dataset: the PEARL paper's and GraphGPS's configs.
_EPOCHS = {"ZINC-12k": (1400, 2000), "Peptides-struct": (200, 400), "DrugOOD": (100, 100)}


def published_epochs(dataset: str | None) -> tuple[int, int] | None:
    """How long the published runs were trained, if that is known."""
    return next((epochs for name, epochs in _EPOCHS.items() if (dataset or "").startswith(name)), None)


def published(dataset: str | None) -> list[dict[str, str]]:
    """Rows (method, setting, split, metric, mean, std, source) of the main tables for a dataset."""
    text = files("graphgps_pearl.report").joinpath("published.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return [row for row in rows if row["dataset"] == dataset and row["table"] in ("main", "peer")]
