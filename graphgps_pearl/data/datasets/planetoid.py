"""Cora, CiteSeer and PubMed: one citation graph each, the class of every node, the public split of 20
training nodes a class, 500 for validation and 1,000 for test.

The public files are those of the Planetoid repository, which PyG reads too: pickles of sparse matrices and
of a dict of neighbours, read here without running them. Self-loops and repeated edges are removed, as PyG
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import coalesce, remove_self_loops

from graphgps_pearl.data.base import BROKEN, DatasetSpec, Facts, Items, Source
from graphgps_pearl.data.cache import checksum
from graphgps_pearl.data.download import fetch_file, files_in, locate
from graphgps_pearl.data.pickles import decode, read_pickle
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line

_URL = "https://raw.githubusercontent.com/kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data"
_PARTS = ("allx", "ally", "tx", "ty", "y", "graph", "test.index")
_VALIDATION = 500


@dataclass(frozen=True)
class _Public:
    dim_in: int
    classes: int
    nodes: int
    edges: int
    sha256: dict[str, str]


_PUBLIC = {
    "cora": _Public(1_433, 7, 2_708, 10_556, {
        "allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    }),
    "citeseer": _Public(3_703, 6, 3_327, 9_104, {
        "allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
        "ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
        "tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
        "ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
        "y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
        "graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
        "test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    }),
    "pubmed": _Public(500, 3, 19_717, 88_648, {  # of allx none is known to us; nodes and edges are checked
        "ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
        "tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
        "ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
        "y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
        "graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
        "test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    }),
}  # fmt: skip


@register_dataset("PyG-Planetoid", "Cora", "CiteSeer", "PubMed", "cora", "citeseer", "pubmed")
class Planetoid(Source):
    """One graph: x [N, dim_in] of words, y [N], no edge features."""

    @property
    def public(self) -> _Public:
        """The dataset's entry."""
        return _PUBLIC[self.cfg.dataset.name.lower()]

    def spec(self) -> DatasetSpec:
        """Classes of nodes of one graph."""
        name, public = self.cfg.dataset.name, self.public
        return DatasetSpec(
            name, "classification", public.dim_in, 0, public.classes, task="node", transductive=True
        )

    def facts(self) -> Facts:
        """Nodes and directed edges."""
        return Facts(num_nodes=self.public.nodes, num_edges=self.public.edges)

    def fingerprint(self) -> dict[str, Any]:
        """The files' checksums."""
        return {part: checksum(file) for part, file in self._files().items()}

    def items(self) -> Items:
        """The graph, and the public split."""
        files = self._files()
        graph, splits = _read(files, self.public.dim_in)
        return Items(str(files["graph"].parent), 1, lambda _: graph, lambda _: "its graph", splits)

    def _files(self) -> dict[str, Path]:
        name = self.cfg.dataset.name.lower()

        def look(place: Path) -> dict[str, Path] | None:
            folders = (place, place / "raw", place / self.cfg.dataset.name / "raw")
            return files_in(folders, {part: f"ind.{name}.{part}" for part in _PARTS})

        wanted = f"ind.{name}.{{{','.join(_PARTS)}}} of {_URL}"
        return locate(self, self.dir / "Planetoid" / name, look, self._fetch, wanted)

    def _fetch(self, folder: Path) -> None:
        for part in _PARTS:
            name, sha256 = f"ind.{self.cfg.dataset.name.lower()}.{part}", self.public.sha256.get(part)
            fetch_file(f"{_URL}/{name}", folder / "raw" / name, sha256 and f"sha256:{sha256}")


def _read(files: dict[str, Path], dim_in: int) -> tuple[Data, dict[str, range | list[int]]]:
    """Training and validation nodes come first in the files, test nodes at the numbers of ``test.index``."""
    allx, ally, tx, ty, y = (
        decode(read_pickle(files[part]), files[part], part).float() for part in _PARTS[:5]
    )
    try:
        test = [int(line) for line in files["test.index"].read_text().split()]
        count = max(test) + 1
        x, labels = torch.zeros(count, dim_in), torch.zeros(count, ally.size(1))
        x[: len(allx)], labels[: len(ally)] = allx, ally
        # The rows of tx are in the order of the file; a test node without a row (CiteSeer has such) stays
        # zero.
        x[test], labels[test] = tx, ty
        graph = Data(x=x, edge_index=_edges(read_pickle(files["graph"])), y=labels.argmax(dim=1))
    except (OSError, *BROKEN) as error:
        raise DataError(
            f"{files['graph'].parent}: the files do not fit together ({first_line(error)}); get them again"
        ) from error
    return graph, {
        "train": range(len(y)),
        "val": range(len(y), min(len(y) + _VALIDATION, len(allx))),
        "test": test,
    }


def _edges(neighbours: Any) -> Tensor:
    if not isinstance(neighbours, dict):
        raise ValueError("the graph is no dict of neighbours")
    pairs = [(int(v), int(u)) for v, others in neighbours.items() for u in others]
    edge_index = torch.tensor(pairs).t().contiguous()
    return coalesce(remove_self_loops(edge_index)[0])
