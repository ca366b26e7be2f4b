"""Configs for the data tests: the schema's defaults, a folder of their own, and what a test says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.prepared import SMILES
from yacs.config import CfgNode

from graphgps_pearl import config

MakeCfg = Callable[..., CfgNode]


@pytest.fixture
def make_cfg(tmp_path: Path) -> MakeCfg:
    def make(data_format: str, name: str, **dataset: Any) -> CfgNode:
        cfg = config.defaults().clone()
        cfg.defrost()
        cfg.dataset.format, cfg.dataset.name = data_format, name
        cfg.dataset.dir = str(tmp_path / "datasets")
        cfg.dataset.task, cfg.dataset.task_type, cfg.model.loss_fun = "graph", "regression", "l1"
        for key, value in dataset.items():
            assert key in cfg.dataset, key
            cfg.dataset[key] = str(value) if isinstance(value, Path) else value
        return cfg

    return make


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Ten molecules with numbers."""
    file = tmp_path / "mine.csv"
    file.write_text("smiles,y\n" + "".join(f"{smiles},{i}\n" for i, smiles in enumerate(SMILES)))
    return file


@pytest.fixture
def cfg(make_cfg: MakeCfg, table: Path) -> CfgNode:
    """Those molecules as a dataset."""
    return make_cfg("csv", "mine", path=table, split_mode="random")
