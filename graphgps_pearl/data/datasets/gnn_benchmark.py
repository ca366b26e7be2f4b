"""PATTERN, CLUSTER (node classes in stochastic block models) and MNIST, CIFAR10 (classes of superpixel
graphs) of *Benchmarking Graph Neural Networks*.

The public files are PyG's (``torch_geometric.datasets.GNNBenchmarkDataset``): one file with three lists
(train, val, test) of dicts of tensors, read without running code. Spelled as in GraphGPS: ``dataset.format:
PyG-GNNBenchmarkDataset``. PATTERN has two classes and thus one logit; the superpixels' positions are
appended to their colours, both as in GraphGPS.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from graphgps_pearl.data.base import (
    TRAIN_VAL_TEST,
    BadRowError,
    DatasetSpec,
    Facts,
    Items,
    Source,
    class_targets,
    joined,
)
from graphgps_pearl.data.download import checksums, fetch_zip, locate
from graphgps_pearl.data.pickles import read_tensors
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError

_URL = "https://data.pyg.org/datasets/benchmarking-gnns/{}_v2.zip"
_MOST_BYTES = 8 << 30


@dataclass(frozen=True)
class _Kind:
    task: str
    dim_in: int
    edge_dim: int
    classes: int
    sizes: tuple[int, int, int]


_KINDS = {
    "PATTERN": _Kind("node", 3, 0, 2, (10_000, 2_000, 2_000)),
    "CLUSTER": _Kind("node", 7, 0, 6, (10_000, 1_000, 1_000)),
    "MNIST": _Kind("graph", 3, 1, 10, (55_000, 5_000, 10_000)),
    "CIFAR10": _Kind("graph", 5, 1, 10, (45_000, 5_000, 10_000)),
}


@register_dataset("PyG-GNNBenchmarkDataset", *_KINDS)
class GNNBenchmark(Source):
    """x [N, dim_in]; y of every node, or of the graph; superpixels have edge_attr [E, 1], their distance."""

    def spec(self) -> DatasetSpec:
        """Node classes, or classes of graphs."""
        name, kind = self.cfg.dataset.name, _KINDS[self.cfg.dataset.name]
        task_type = "classification_binary" if kind.classes == 2 else "classification"
        dim_out = 1 if kind.classes == 2 else kind.classes
        return DatasetSpec(name, task_type, kind.dim_in, kind.edge_dim, dim_out, task=kind.task)

    def facts(self) -> Facts:
        """Published sizes of the splits."""
        return Facts(dict(zip(TRAIN_VAL_TEST, _KINDS[self.cfg.dataset.name].sizes, strict=True)))

    def fingerprint(self) -> dict[str, Any]:
        """The file's checksum."""
        return checksums(self, {"file": self._file()})

    def items(self) -> Items:
        """Graphs of the three splits, one after the other."""
        file = self._file()
        content = read_tensors(file)
        if len(content) != 3 or not all(isinstance(part, list | tuple) for part in content):
            raise DataError(f"{file}: not the three lists train, val and test; download it again")
        rows, splits = joined(dict(zip(TRAIN_VAL_TEST, content, strict=True)))
        kind, task_type = _KINDS[self.cfg.dataset.name], self.spec().task_type

        def where(i: int) -> str:
            return f"graph {rows[i][1]} of {rows[i][0]}"

        return Items(str(file), len(rows), lambda i: _graph(rows[i][2], kind, task_type), where, splits)

    def _file(self) -> Path:
        name = self.cfg.dataset.name

        def look(place: Path) -> Path | None:
            folders = (place, place / "raw", place / name / "raw")
            files = [folder / f"{name}{version}.pt" for folder in folders for version in ("_v2", "")]
            return next((file for file in (place, *files) if file.is_file()), None)

        folder = self.dir / "GNNBenchmarkDataset" / name
        return locate(self, folder, look, self._fetch, f"{name}_v2.pt of {_URL.format(name)}")

    def _fetch(self, folder: Path) -> None:
        name = self.cfg.dataset.name
        members = {f"{name}_v2.pt": folder / "raw" / f"{name}_v2.pt"}
        # Its publisher names no checksum; the sizes are checked.
        fetch_zip(_URL.format(name), folder / f"{name}_v2.zip", None, members, _MOST_BYTES)


def _graph(row: Any, kind: _Kind, task_type: str) -> Data:
    try:
        x = row["x"].float()
        if kind.task == "graph":
            x = torch.cat((x, row["pos"].float()), dim=1)
        graph = Data(x=x, edge_index=row["edge_index"].long(), y=class_targets(row["y"], task_type))
        if kind.edge_dim:
            graph.edge_attr = row["edge_attr"].float().view(-1, kind.edge_dim)
        fits = len(graph.y) == (len(x) if kind.task == "node" else 1) and x.size(1) == kind.dim_in
    except (KeyError, TypeError, AttributeError, RuntimeError, IndexError, ValueError) as error:
        raise BadRowError("not a dict of fitting tensors x, edge_index, y, edge_attr and pos") from error
    if not fits:
        raise BadRowError(f"x {list(x.shape)} and y {list(row['y'].shape)} do not fit together")
    return graph
