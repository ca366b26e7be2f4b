"""MalNet-Tiny: 5,000 function call graphs of Android programs in five classes, directed, up to 5,000 nodes.

The public files are ``malnet-graphs-tiny.tar.gz`` (edge lists in one folder per class) and
``split_info_tiny.zip`` (names of train, val and test), unpacked next to each other as PyG's ``MalNetTiny``
has them. Nodes without an edge to another are removed, as GraphGPS does. ``dataset.name`` is the kind of node
features, as in GraphGPS: ``LocalDegreeProfile`` (degree; least, largest, mean and deviation of the
neighbours' degrees) or ``none``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import LocalDegreeProfile
from torch_geometric.utils import remove_isolated_nodes

from graphgps_pearl.data.base import TRAIN_VAL_TEST, BadRowError, DatasetSpec, Facts, Items, Source
from graphgps_pearl.data.cache import checksum
from graphgps_pearl.data.download import locate
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError

_CLASSES = ("addisplay", "adware", "benign", "downloader", "trojan")
_GRAPHS, _SPLIT = "malnet-graphs-tiny", "split_info_tiny"
_SITE = "http://malnet.cc.gatech.edu"


@register_dataset("PyG-MalNetTiny", "LocalDegreeProfile", "Constant", "none")
class MalNetTiny(Source):
    """x [N, 5] or ones [N, 1], no edge features, y the class."""

    def spec(self) -> DatasetSpec:
        """Five classes."""
        columns = 5 if self.cfg.dataset.name == "LocalDegreeProfile" else 1
        return DatasetSpec("MalNet-Tiny", "classification", columns, 0, 5, _CLASSES)

    def facts(self) -> Facts:
        """Sizes of the splits."""
        return Facts({"train": 3_500, "val": 500, "test": 1_000})

    def fingerprint(self) -> dict[str, Any]:
        """Classes, names and checksums of the edge lists, and the splits' checksums."""
        folder = self._folder()
        graphs = "".join(f"{label} {file.name} {checksum(file)}\n" for file, label in _edge_lists(folder))
        marks = {split: checksum(_split_file(folder, split)) for split in TRAIN_VAL_TEST}
        return {**marks, "graphs": hashlib.sha256(graphs.encode()).hexdigest()}

    def items(self) -> Items:
        """Graphs by class and name; each file is in one split."""
        folder = self._folder()
        found = _edge_lists(folder)
        number = {file.stem: i for i, (file, _) in enumerate(found)}
        splits: dict[str, list[int]] = {}
        for split in TRAIN_VAL_TEST:
            file = _split_file(folder, split)
            names = [line.rsplit("/", 1)[-1] for line in file.read_text().split()]
            missing = next((name for name in names if name not in number), None)
            if missing is not None:
                raise DataError(f"{file}: {missing} has no edge list in {folder / _GRAPHS}; unpack it again")
            splits[split] = sorted(number[name] for name in names)
        degrees = LocalDegreeProfile() if self.cfg.dataset.name == "LocalDegreeProfile" else None

        def graph(i: int) -> Data:
            file, label = found[i]
            edge_index, nodes = _read(file)
            data = Data(edge_index=edge_index, num_nodes=nodes, y=torch.tensor([label]))
            data.x = torch.ones(nodes, 1) if degrees is None else degrees(data).x
            del data.num_nodes
            return data

        return Items(str(folder), len(found), graph, lambda i: found[i][0].name, splits)

    def _folder(self) -> Path:
        def look(place: Path) -> Path | None:
            for folder in (place, place / "raw", place / "MalNetTiny" / "raw"):
                if (folder / _GRAPHS).is_dir() and _split_file(folder, "train").is_file():
                    return folder
            return None

        wanted = f"put {_GRAPHS}/ and {_SPLIT}/ here, from {_SITE}/graph-data/{_GRAPHS}.tar.gz and "
        wanted += f"{_SITE}/split-info/{_SPLIT}.zip"
        return locate(self, self.dir / "MalNetTiny", look, None, wanted)


def _split_file(folder: Path, split: str) -> Path:
    return folder / _SPLIT / "type" / f"{split}.txt"


def _edge_lists(folder: Path) -> list[tuple[Path, int]]:
    """Every edge list with its class."""
    return [
        (file, label)
        for label, name in enumerate(_CLASSES)
        for file in sorted((folder / _GRAPHS / name).rglob("*.edgelist"))
    ]


def _read(file: Path) -> tuple[torch.Tensor, int]:
    """edge_index of the nodes that have an edge to another, and their number."""
    try:
        pairs = np.loadtxt(file, dtype=np.int64, comments="#", ndmin=2)
    except (ValueError, OSError) as error:
        raise BadRowError(f"not lines of two node numbers ({error})") from error
    if pairs.shape[1:] != (2,) or not len(pairs):
        raise BadRowError("not lines of two node numbers")
    edge_index, _, mask = remove_isolated_nodes(torch.from_numpy(pairs.T.copy()))
    if not edge_index.numel():
        raise BadRowError("has no edge between two nodes")
    return edge_index, int(mask.sum())
