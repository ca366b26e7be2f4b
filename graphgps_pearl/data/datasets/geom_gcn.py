"""Actor, WebKB (Cornell, Texas, Wisconsin) and WikipediaNetwork (chameleon, squirrel): one graph each, the
class of every node, ten public splits (``dataset.split_index``).

The public files are those of Geom-GCN's repository, which PyG reads too: two text files (nodes with features
and class, edges) and ten ``.npz`` with masks. Edges are directed as in the files, repeated ones are removed,
as PyG does. Spelled as in GraphGPS: ``PyG-Actor`` (name ``none``), ``PyG-WebKB``, ``PyG-WikipediaNetwork``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import coalesce

from graphgps_pearl.data.base import BROKEN, TRAIN_VAL_TEST, DatasetSpec, Facts, Items, Source
from graphgps_pearl.data.cache import checksum
from graphgps_pearl.data.download import fetch_file, locate
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line

_URL = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/f1fc0d14b3b019c562737240d06ec83b07d16a8f"
_NODES, _EDGES = "out1_node_feature_label.txt", "out1_graph_edges.txt"
_CLASSES = 5


@dataclass(frozen=True)
class _Public:
    """A dataset's public files: name there, number of features and nodes, SHA-256 of nodes, edges and the ten
    splits joined; None where it is not known to us, and the sizes are what is checked."""

    stem: str
    dim_in: int
    nodes: int
    nodes_sha256: str | None
    edges_sha256: str
    splits_sha256: str


_PUBLIC = {
    "none": _Public("film", 932, 7_600,
        "1d5cdd094f8b91e770f6decfca85b35cf42f75d1efb51055fd6af16e11820ff8",
        "997cdce67ea9c29257d3ffe796328391931901cf823830affa453178b60e2c3e",
        "f481d1e1029511a83f09d5fd468e557b05a6e9b616c61beff3ccc59e10163aef"),
    "cornell": _Public("cornell", 1_703, 183,
        "cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3",
        "c4522a00cc40873c8a04a3a07c49e24a48a507eb284ac9c9f2d3e0590351bbb7",
        "54be1de855f5e30fe453905ae4dd758caddb158ac6a38c26a56cc0da001de031"),
    "texas": _Public("texas", 1_703, 183,
        "cf5a3ca346cdd1210b8342e22517fcbbdae658065b7a3145f59350e50e6236a3",
        "0fe85183243a78cbee9b85a684f8240963d04d1020d10e9cd2b8cfb25e33b476",
        "6e5ee06a53c835b62a1b7d08e520e5fbb80040e6cb280e0c20b6f03b484142b5"),
    "wisconsin": _Public("wisconsin", 1_703, 251,
        "a32b0aa38d42f0d36841e8a8cb646d197f0ff33a182ac75a2b4476aeed3c7e4b",
        "ebd213511c88fce1eda450c2f920600c4b8cbb38f02384856bcc47c6ec1807ae",
        "e9c3347b42757635afba611449456c8ab6b64d288affc2709275917da1199b8c"),
    "chameleon": _Public("chameleon", 2_325, 2_277, None,
        "45ac593de9207470090230c8fd76beeb2f60b5371a9be088e8bf31e7f0619a4b",
        "c16686a284750b5178bbac1701d7d75f0d1c0345b512fc4907e743949cb07384"),
    "squirrel": _Public("squirrel", 2_089, 5_201, None,
        "453d8e96754d68e2ab0a7ebb56f93506b59531d95abaec7a2b46fe1eae7c39cd",
        "d80c376966cee5ce3745cef358cb80aec6cfb64b7903cf80f452e35ac3e9f2c3"),
}  # fmt: skip


class GeomGCN(Source):
    """One graph: x [N, dim_in], y [N], no edge features."""

    num_splits = 10

    @property
    def public(self) -> _Public:
        """The dataset's entry, ``Cornell`` or ``cornell``."""
        return _PUBLIC[self.cfg.dataset.name.lower()]

    def spec(self) -> DatasetSpec:
        """Five classes of nodes of one graph."""
        public, dim_in = self.public, self.public.dim_in
        return DatasetSpec(public.stem, "classification", dim_in, 0, _CLASSES, task="node", transductive=True)

    def facts(self) -> Facts:
        """The number of nodes."""
        return Facts(num_nodes=self.public.nodes)

    def fingerprint(self) -> dict[str, Any]:
        """The files' checksums; which split."""
        folder = self._folder()
        return {file: checksum(folder / file) for file in (_NODES, _EDGES, self._split_file())}

    def items(self) -> Items:
        """The graph, and the nodes of the chosen split."""
        folder = self._folder()
        x, y = _read_nodes(folder / _NODES, self.public)
        edges = _numbers(folder / _EDGES)
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise DataError(f"{folder / _EDGES}: not two columns of node numbers; get it again")
        edge_index = coalesce(torch.from_numpy(edges.T.copy()))
        graph = Data(x=x, edge_index=edge_index, y=y)
        splits = _read_masks(folder / self._split_file(), len(y))
        return Items(str(folder), 1, lambda _: graph, lambda _: "its graph", splits)

    def _split_file(self) -> str:
        return f"{self.public.stem}_split_0.6_0.2_{self.cfg.dataset.split_index % self.num_splits}.npz"

    def _folder(self) -> Path:
        stem = self.public.stem

        def look(place: Path) -> Path | None:
            folders = (place, place / "raw", place / stem / "raw", place / stem / "geom_gcn" / "raw")
            wanted = (_NODES, _EDGES, self._split_file())
            return next((f for f in folders if all((f / name).is_file() for name in wanted)), None)

        wanted = f"{_NODES}, {_EDGES} and {stem}_split_0.6_0.2_0.npz to _9.npz of {_URL}"
        return locate(self, self.dir / "geom-gcn" / stem, look, self._fetch, wanted)

    def _fetch(self, folder: Path) -> None:
        public, raw = self.public, folder / "raw"
        for name, sha256 in ((_NODES, public.nodes_sha256), (_EDGES, public.edges_sha256)):
            fetch_file(f"{_URL}/new_data/{public.stem}/{name}", raw / name, sha256 and f"sha256:{sha256}")
        together = hashlib.sha256()
        files = [raw / f"{public.stem}_split_0.6_0.2_{i}.npz" for i in range(self.num_splits)]
        for file in files:
            fetch_file(f"{_URL}/splits/{file.name}", file, None)  # all ten are checked together
            together.update(file.read_bytes())
        if together.hexdigest() != public.splits_sha256:
            for file in files:
                file.unlink()
            raise DataError(f"{_URL}/splits: the ten splits have another checksum than the public ones")


@register_dataset("PyG-Actor", "none")
class Actor(GeomGCN):
    """Actors of films: keywords of their Wikipedia pages, five kinds of words."""


@register_dataset("PyG-WebKB", "cornell", "texas", "wisconsin", "Cornell", "Texas", "Wisconsin")
class WebKB(GeomGCN):
    """Pages of computer science departments: words, five kinds of pages."""


@register_dataset("PyG-WikipediaNetwork", "chameleon", "squirrel")
class WikipediaNetwork(GeomGCN):
    """Wikipedia pages on a topic: nouns, five levels of traffic; preprocessed by Geom-GCN."""


def _numbers(file: Path) -> NDArray[np.int64]:
    try:
        return np.loadtxt(file, dtype=np.int64, delimiter="\t", skiprows=1, ndmin=2)
    except (ValueError, OSError) as error:
        raise DataError(f"{file}: not whole numbers ({first_line(error)}); get it again") from error


def _read_nodes(file: Path, public: _Public) -> tuple[torch.Tensor, torch.Tensor]:
    """Lines ``number TAB features TAB class``: all features 0 or 1, or (Actor) the numbers of those
    present."""
    try:
        lines = [line.split("\t") for line in file.read_text().splitlines()[1:] if line]
        numbers = [int(line[0]) for line in lines]
        y = torch.full((len(lines),), -1, dtype=torch.long)
        x = np.zeros((len(lines), public.dim_in), np.float32)
        for number, line in zip(numbers, lines, strict=True):
            features = np.array(line[1].split(","), dtype=np.float32)
            if public.stem == "film":
                x[number, features.astype(np.int64)] = 1.0
            else:
                x[number] = features
            y[number] = int(line[2])
    except (ValueError, IndexError, OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{file}: not lines of number, {public.dim_in} features and class ({first_line(error)}); "
            "get it again"
        ) from error
    if sorted(numbers) != list(range(len(numbers))):
        raise DataError(f"{file}: nodes are not numbered 0, 1, ...; get it again")
    return torch.from_numpy(x), y


def _read_masks(file: Path, nodes: int) -> dict[str, list[int]]:
    try:
        with np.load(file, allow_pickle=False) as held:
            masks = {split: np.asarray(held[f"{split}_mask"]) for split in TRAIN_VAL_TEST}
    except (OSError, *BROKEN) as error:
        raise DataError(f"{file}: no file of masks ({first_line(error)}); get it again") from error
    if any(mask.shape != (nodes,) for mask in masks.values()):
        raise DataError(f"{file}: its masks are not for the {nodes} nodes of {_NODES}; get both again")
    return {split: np.flatnonzero(mask).tolist() for split, mask in masks.items()}
