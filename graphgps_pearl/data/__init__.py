"""Datasets: downloaded, embedded and your own, prepared once and never silently wrong.

``spec(cfg)`` says what is known without loading, ``load(cfg, transforms)`` gives the splits,
``make_loader`` batches.
"""

from graphgps_pearl.data.base import BadRowError, DataBundle, DatasetSpec, Facts, Items, SkippedRow, Source
from graphgps_pearl.data.loader import GraphLoader, make_loader
from graphgps_pearl.data.prepare import declared, load, require_files, spec
from graphgps_pearl.data.registry import available, register_dataset
from graphgps_pearl.data.table import GraphTable

__all__ = [
    "BadRowError",
    "DataBundle",
    "DatasetSpec",
    "Facts",
    "GraphLoader",
    "GraphTable",
    "Items",
    "SkippedRow",
    "Source",
    "available",
    "declared",
    "load",
    "make_loader",
    "register_dataset",
    "require_files",
    "spec",
]
