"""ogbg-molhiv, ogbg-molpcba and ogbg-ppa: OGB's graph property prediction, read from OGB's own CSV files.

``raw/`` has one row per node or edge of all graphs (``node-feat``, ``edge``, ``edge-feat``), their counts
per graph and the labels; ``split/<kind>/`` the rows of train, valid and test. Edges are listed in one
direction, and the other follows each, as OGB's reader does. Molecules come with OGB's features, so RDKit is
not needed. Spelled as in GraphGPS: ``dataset.format: OGB``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from graphgps_pearl.data.base import (
    BROKEN,
    DatasetSpec,
    Facts,
    Items,
    Source,
    class_target,
)
from graphgps_pearl.data.download import checksums, fetch_zip, locate
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line
from graphgps_pearl.unpacking import open_gzip

_URL = "https://snap.stanford.edu/ogb/data/graphproppred/"
_MOST_BYTES = 16 << 30
_SPLITS = {"train": "train", "val": "valid", "test": "test"}


@dataclass(frozen=True)
class Public:
    """A dataset's task and sizes, and the name of its zip, of the folder in it, and of its split."""

    task_type: str
    dim_in: int
    edge_dim: int
    dim_out: int
    sizes: dict[str, int]
    zip: str
    split: str
    has_node_features: bool = True


_PUBLIC = {
    "ogbg-molhiv": Public("classification_binary", 9, 3, 1,
        {"train": 32_901, "val": 4_113, "test": 4_113}, "csv_mol_download/hiv", "scaffold"),
    "ogbg-molpcba": Public("classification_multilabel", 9, 3, 128,
        {"train": 350_343, "val": 43_793, "test": 43_793}, "csv_mol_download/pcba", "scaffold"),
    "ogbg-ppa": Public("classification", 1, 7, 37,
        {"train": 78_200, "val": 45_100, "test": 34_800}, "ogbg_ppi_medium", "species", False),
}  # fmt: skip


@register_dataset("OGB", *_PUBLIC, *(name.replace("ogbg-", "ogbg_") for name in _PUBLIC))
class OGBGraphs(Source):
    """x [N, 9] and edge_attr [E, 3] of molecules; ppa: x [N, 1] of zeros, edge_attr [E, 7] real-valued."""

    @property
    def public(self) -> Public:
        """The dataset's entry; GraphGPS allows ``_`` for ``-``."""
        return _PUBLIC[self.cfg.dataset.name.replace("_", "-")]

    def spec(self) -> DatasetSpec:
        """One class (molhiv), 128 labels (molpcba) or one of 37 classes (ppa)."""
        public = self.public
        return DatasetSpec(
            self.cfg.dataset.name, public.task_type, public.dim_in, public.edge_dim, public.dim_out
        )

    def facts(self) -> Facts:
        """Published sizes of the splits."""
        return Facts(self.public.sizes)

    def fingerprint(self) -> dict[str, Any]:
        """The files' checksums."""
        folder = self._folder()
        return checksums(self, {name: folder / name for name in self._names()})

    def items(self) -> Items:
        """Graphs in the files' order."""
        folder, public = self._folder(), self.public
        raw = folder / "raw"
        nodes, edges = (read_starts(raw / f"num-{kind}-list.csv.gz") for kind in ("node", "edge"))
        ends = read_table(raw / "edge.csv.gz", np.int32)
        edge_values = read_table(raw / "edge-feat.csv.gz", np.float32)
        x = read_table(raw / "node-feat.csv.gz", np.int32) if public.has_node_features else None
        labels = read_table(raw / "graph-label.csv.gz", np.float32)
        wanted = {"edge": (ends, edges[-1], 2), "edge-feat": (edge_values, edges[-1], public.edge_dim)}
        wanted["graph-label"] = (labels, len(nodes) - 1, 1 if public.dim_out == 37 else public.dim_out)
        if x is not None:
            wanted["node-feat"] = (x, nodes[-1], public.dim_in)
        for name, (table, rows, columns) in wanted.items():
            if table.shape != (rows, columns):
                raise DataError(f"{raw / name}.csv.gz: {table.shape}, not {(rows, columns)}; get it again")

        def graph(i: int) -> Data:
            count, part = int(nodes[i + 1] - nodes[i]), slice(edges[i], edges[i + 1])
            pairs = torch.from_numpy(ends[part]).long()
            values = torch.from_numpy(edge_values[part]).repeat_interleave(2, dim=0)
            features = torch.zeros(count, 1) if x is None else torch.from_numpy(x[nodes[i] : nodes[i + 1]])
            return Data(
                x=features.long(),
                edge_index=torch.stack((pairs, pairs.flip(1)), dim=1).view(-1, 2).t().contiguous(),
                edge_attr=values if x is None else values.long(),
                y=_target(torch.from_numpy(labels[i]), public.task_type),
            )

        splits = read_rows(folder, self.public.split)
        return Items(str(raw), len(nodes) - 1, graph, lambda i: f"graph {i}", splits)

    def _names(self) -> list[str]:
        raw = ["edge", "edge-feat", "num-node-list", "num-edge-list", "graph-label"]
        raw += ["node-feat"] if self.public.has_node_features else []
        names = [f"raw/{name}" for name in raw]
        names += [f"split/{self.public.split}/{name}" for name in _SPLITS.values()]
        return [f"{name}.csv.gz" for name in names]

    def _folder(self) -> Path:
        stem = self.cfg.dataset.name.replace("-", "_")

        def look(place: Path) -> Path | None:
            folders = (place, place / stem, place / self.cfg.dataset.name)
            return next((f for f in folders if all((f / name).is_file() for name in self._names())), None)

        wanted = f"the folders raw/ and split/ of {_URL}{self.public.zip}.zip"
        return locate(self, self.dir / stem, look, self._fetch, wanted)

    def _fetch(self, folder: Path) -> None:
        archive = folder / f"{Path(self.public.zip).name}.zip"
        # Its publisher names no checksum; the sizes of the splits are checked.
        members = {f"{archive.stem}/{name}": folder / name for name in self._names()}
        fetch_zip(f"{_URL}{self.public.zip}.zip", archive, None, members, _MOST_BYTES)


def _target(labels: torch.Tensor, task_type: str) -> torch.Tensor:
    return class_target(int(labels), task_type) if task_type == "classification" else labels.view(1, -1)


def read_table(file: Path, dtype: Any) -> NDArray[Any]:
    """A gzipped CSV without a header, as numbers; an empty cell is NaN."""
    import pandas  # comes with ogb; only these files need it

    try:
        with open_gzip(file) as content:
            return pandas.read_csv(content, header=None, dtype=dtype).to_numpy(dtype, copy=True)
    except (OSError, *BROKEN) as error:
        raise DataError(f"{file}: not a table of numbers ({first_line(error)}); get it again") from error


def read_starts(file: Path) -> NDArray[np.int64]:
    """Where each graph's rows begin, from their numbers; the last entry is the total."""
    return np.concatenate((np.zeros(1, np.int64), read_table(file, np.int64)[:, 0].cumsum()))


def read_rows(folder: Path, kind: str) -> dict[str, list[int]]:
    """The graphs of every split."""
    files = {split: folder / "split" / kind / f"{name}.csv.gz" for split, name in _SPLITS.items()}
    return {split: [int(row) for row in read_table(file, np.int64)[:, 0]] for split, file in files.items()}
