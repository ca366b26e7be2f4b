"""A small table of molecules, and a transform that counts its runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

SMILES = ["CCO", "c1ccccc1", "CC(=O)O", "CCN", "C1CCCCC1", "CCCl", "CO", "CCCC", "C#N", "OCCO"]


class Scale(BaseTransform):
    """Adds a column of its factor; counts how often it runs."""

    runs = 0

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def forward(self, graph: Data) -> Data:
        """Add the column."""
        Scale.runs += 1
        graph.pe = torch.full((graph.num_nodes, 1), self.factor)
        return graph

    def __repr__(self) -> str:
        return f"Scale(factor={self.factor})"


def prepared(cfg: Any) -> list[Path]:
    """The files of prepared data."""
    return sorted((Path(cfg.dataset.dir) / "prepared").iterdir())
