"""Published figures, to be shown beside measured ones and never mixed with them."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from importlib.resources import files
from typing import Any


def dataset_title(config: Mapping[str, Any]) -> str | None:
    """The name under which a dataset's published figures stand, or None."""
    fmt, name = config["dataset"]["format"], config["dataset"]["name"].lower()
    if fmt == "PyG-ZINC" and name == "subset":
        return "ZINC-12k"
    if name in ("peptides-structural", "peptides-struct"):
        return "Peptides-struct"
    if fmt == "DrugOOD":
        _, _, measurement, domain = name.split("_")
        return f"DrugOOD-{measurement}-{domain}"
    return {"REDDIT-BINARY": "REDDIT-B", "REDDIT-MULTI-5K": "REDDIT-M"}.get(config["dataset"]["name"])


def published(dataset: str | None) -> list[dict[str, str]]:
    """Rows (method, setting, split, metric, mean, std, source) of the main tables for a dataset."""
    text = files("graphgps_pearl.report").joinpath("published.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return [row for row in rows if row["dataset"] == dataset and row["table"] in ("main", "peer")]
