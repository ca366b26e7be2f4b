"""REDDIT-BINARY and REDDIT-MULTI-5K of the TUDataset collection: discussion threads, no node or edge
features.

Read from the public text files (``NAME_A.txt``, ``NAME_graph_indicator.txt``, ``NAME_graph_labels.txt``,
laid out as PyG's ``TUDataset`` does) with PyG's conventions: self-loops and repeated edges are removed,
labels are numbered in order. PyG's own class is not used, since it loads its processed files with code
execution allowed. 10-fold cross-validation: ``dataset.split_index`` is the fold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from graphgps_pearl.data.base import DatasetSpec, Facts, Items, Source, class_target
from graphgps_pearl.data.download import checksums, fetch_zip, files_in, locate
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError

_URL = "https://www.chrsmrrs.com/graphkerneldatasets/{}.zip"
_MOST_BYTES = 1 << 30
_PARTS = ("A", "graph_indicator", "graph_labels")
_GRAPHS = {"REDDIT-BINARY": 2000, "REDDIT-MULTI-5K": 4999}
_CLASSES = {"REDDIT-BINARY": 2, "REDDIT-MULTI-5K": 5}


@register_dataset("PyG-TUDataset", *_GRAPHS)
class TUDataset(Source):
    """x [N, 1] of ones, no edge features, y the class."""

    standard_split_mode = "cv-stratifiedkfold-10"

    def spec(self) -> DatasetSpec:
        """Two or five classes on graphs without features."""
        name = self.cfg.dataset.name
        spec = DatasetSpec(name, "classification", 1, 0, _CLASSES[name])
        return self.two_class_spec(spec) if _CLASSES[name] == 2 else spec

    def facts(self) -> Facts:
        """The number of graphs."""
        return Facts(num_graphs=_GRAPHS[self.cfg.dataset.name])

    def fingerprint(self) -> dict[str, Any]:
        """The text files' checksums."""
        return {**checksums(self, self._files()), "form": self.spec().task_type}

    def items(self) -> Items:
        """Graphs in the files' order."""
        files = self._files()
        edges = _numbers(files["A"], ndmin=2)
        if edges.size and edges.shape[1] != 2:
            raise DataError(f"{files['A']}: not two node numbers in a line; get it again")
        edges = edges.reshape(-1, 2) - 1
        owner, raw_labels = (_numbers(files[part]) for part in _PARTS[1:])
        _require_fitting(files, edges, owner, raw_labels)
        starts = np.searchsorted(owner, np.arange(1, len(raw_labels) + 2))
        edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)  # sorted by source, so by graph
        cuts = np.searchsorted(edges[:, 0], starts)
        labels = np.unique(raw_labels, return_inverse=True)[1]
        form = self.spec().task_type

        def graph(i: int) -> Data:
            edge_index = torch.from_numpy(edges[cuts[i] : cuts[i + 1]].T - starts[i]).contiguous()
            nodes = int(starts[i + 1] - starts[i])
            return Data(x=torch.ones(nodes, 1), edge_index=edge_index, y=class_target(int(labels[i]), form))

        return Items(str(files["A"].parent), len(labels), graph, lambda i: f"graph {i + 1}")

    def _files(self) -> dict[str, Path]:
        name = self.cfg.dataset.name

        def look(place: Path) -> dict[str, Path] | None:
            folders = (place, place / "raw", place / name, place / name / "raw")
            return files_in(folders, {part: f"{name}_{part}.txt" for part in _PARTS})

        wanted = "wanted are " + ", ".join(f"{name}_{part}.txt" for part in _PARTS)
        return locate(self, self.dir / "TUDataset" / name, look, self._fetch, wanted)

    def _fetch(self, folder: Path) -> None:
        name = self.cfg.dataset.name
        files = [f"{name}_{part}.txt" for part in _PARTS]
        members = {f"{name}/{file}": folder / "raw" / file for file in files}
        # Its publisher names no checksum.
        fetch_zip(_URL.format(name), folder / f"{name}.zip", None, members, _MOST_BYTES)


def _numbers(file: Path, ndmin: Literal[1, 2] = 1) -> NDArray[np.int64]:
    try:
        return np.loadtxt(file, dtype=np.int64, delimiter=",", ndmin=ndmin)
    except (ValueError, OSError) as error:
        raise DataError(f"{file}: not whole numbers ({error}); get it again") from error


def _require_fitting(
    files: dict[str, Path], edges: NDArray[np.int64], owner: NDArray[np.int64], labels: NDArray[np.int64]
) -> None:
    """Edges join existing nodes of one graph, and nodes are listed graph by graph."""
    indicator = files["graph_indicator"]
    if owner.ndim != 1 or not len(owner) or owner[0] < 1 or bool((np.diff(owner) < 0).any()):
        raise DataError(f"{indicator}: graphs are not numbered 1, 2, ... in order; get it again")
    if len(labels) < owner[-1]:
        raise DataError(f"{files['graph_labels']}: {len(labels)} labels for {owner[-1]} graphs; get it again")
    if len(edges) and (edges.min() < 0 or edges.max() >= len(owner)):
        raise DataError(f"{files['A']}: names nodes that {indicator.name} does not have; get both again")
    if bool((owner[edges[:, 0]] != owner[edges[:, 1]]).any()):
        raise DataError(f"{files['A']}: has edges between different graphs; get it again")
