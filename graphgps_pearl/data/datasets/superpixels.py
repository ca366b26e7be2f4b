"""PascalVOC-SP and COCO-SP of the Long Range Graph Benchmark: superpixels of images, the object each belongs
to.

The public files are pickles with tuples (x, edge_attr, edge_index, y), one file per split, read without
running them; PyG's ``LRGBDataset`` has the same. Spelled as in GraphGPS: ``dataset.format:
PyG-VOCSuperpixels`` or ``PyG-COCOSuperpixels``, ``dataset.name`` the kind of graph and
``dataset.slic_compactness`` the segmentation; or ``PyG-LRGB`` with ``PascalVOC-SP`` and ``COCO-SP``. COCO's
labels have gaps and are numbered 0 to 80 here, as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from graphgps_pearl.data.base import TRAIN_VAL_TEST, BadRowError, DatasetSpec, Facts, Items, Source, joined
from graphgps_pearl.data.download import checksums, fetch_zip, files_in, locate
from graphgps_pearl.data.pickles import decode, read_pickle, require_own_bytes
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError

_BOUNDARY = "edge_wt_region_boundary"
_KINDS = (_BOUNDARY, "edge_wt_coord_feat", "edge_wt_only_coord")
_MOST_BYTES = 64 << 30
# COCO's numbers of 80 objects between 0 (background) and 90.
_COCO_GAPS = frozenset({12, 26, 29, 30, 45, 66, 68, 69, 71, 83})


@dataclass(frozen=True)
class _Public:
    name: str
    classes: int
    sizes: tuple[int, int, int]
    stem: str
    zip_key: str  # of the region boundary graphs with compactness 30


_VOC = _Public("PascalVOC-SP", 21, (8_498, 1_428, 1_429), "voc_superpixels", "8x722ai272wqwl4")
_COCO = _Public("COCO-SP", 81, (113_286, 5_000, 5_000), "coco_superpixels", "r6ihg1f4pmyjjy0")


class Superpixels(Source):
    """x [N, 14], edge_attr [E, 2] (region boundaries) or [E, 1], y [N] the object."""

    public: _Public

    def spec(self) -> DatasetSpec:
        """Classes of nodes."""
        columns = 2 if self._kind() == _BOUNDARY else 1
        return DatasetSpec(self.public.name, "classification", 14, columns, self.public.classes, task="node")

    def facts(self) -> Facts:
        """Published sizes of the splits."""
        return Facts(dict(zip(TRAIN_VAL_TEST, self.public.sizes, strict=True)))

    def fingerprint(self) -> dict[str, Any]:
        """The files' checksums."""
        return checksums(self, self._files())

    def items(self) -> Items:
        """Images of the three splits, one after the other."""
        files = self._files()
        rows, splits = joined({split: _rows(file) for split, file in files.items()})
        columns, coco = self.spec().edge_dim, self.public is _COCO

        def graph(i: int) -> Data:
            split, number, parts = rows[i]
            return _graph(files[split], number, parts, columns or 0, coco)

        def where(i: int) -> str:
            return f"graph {rows[i][1]} ({files[rows[i][0]].name})"

        return Items(str(files["train"].parent), len(rows), graph, where, splits)

    def _kind(self) -> str:
        name = self.cfg.dataset.name
        return name if name in _KINDS else _BOUNDARY

    def _files(self) -> dict[str, Path]:
        kind, stem = self._kind(), self.public.stem
        compactness = f"slic_compactness_{self.cfg.dataset.slic_compactness}"

        def look(place: Path) -> dict[str, Path] | None:
            folders = [place, place / "raw", place / f"{stem}_{kind}", place / compactness / kind / "raw"]
            folders.append(place / self.public.name.lower() / "raw")  # PyG's LRGBDataset
            return files_in(folders, {split: f"{split}.pickle" for split in TRAIN_VAL_TEST})

        public = kind == _BOUNDARY and self.cfg.dataset.slic_compactness == 30
        wanted = f"train.pickle, val.pickle and test.pickle of {stem}_{kind}.zip ({compactness})"
        folder = self.dir / self.public.name
        return locate(self, folder, look, self._fetch if public else None, f"wanted are {wanted}")

    def _fetch(self, folder: Path) -> None:
        stem = f"{self.public.stem}_{_BOUNDARY}"
        archive = folder / f"{stem}.zip"
        # Its publisher names no checksum; the sizes of the splits are checked.
        url = f"https://www.dropbox.com/s/{self.public.zip_key}/{archive.name}?dl=1"
        raw = folder / f"slic_compactness_30/{_BOUNDARY}/raw"
        members = {f"{stem}/{s}.pickle": raw / f"{s}.pickle" for s in TRAIN_VAL_TEST}
        fetch_zip(url, archive, None, members, _MOST_BYTES)


@register_dataset("PyG-VOCSuperpixels", *_KINDS)
class VOCSuperpixels(Superpixels):
    """PascalVOC-SP: 11,355 images, 21 classes."""

    public = _VOC


@register_dataset("PyG-COCOSuperpixels", *_KINDS)
class COCOSuperpixels(Superpixels):
    """COCO-SP: 123,286 images, 81 classes."""

    public = _COCO


@register_dataset("PyG-LRGB", "PascalVOC-SP", "pascalvoc-sp")
class PyGPascalVOC(VOCSuperpixels):
    """PascalVOC-SP by PyG's name."""


@register_dataset("PyG-LRGB", "COCO-SP", "coco-sp")
class PyGCOCO(COCOSuperpixels):
    """COCO-SP by PyG's name."""


def _rows(file: Path) -> list[Any]:
    content = read_pickle(file)
    if not isinstance(content, list) or not all(isinstance(row, tuple) for row in content):
        raise DataError(f"{file}: not a list of graphs; get it again")
    require_own_bytes((part for row in content for part in row), file)
    return content


def _graph(file: Path, row: int, parts: Any, columns: int, coco: bool) -> Data:
    try:
        x, edge_attr, edge_index, labels = parts
        y = torch.as_tensor(labels if isinstance(labels, list) else decode(labels, file, f"graph {row}'s y"))
        graph = Data(
            x=decode(x, file, f"graph {row}'s x").float().view(-1, 14),
            edge_attr=decode(edge_attr, file, f"graph {row}'s edge_attr").float().view(-1, columns),
            edge_index=decode(edge_index, file, f"graph {row}'s edge_index").long().view(2, -1),
            y=y.long(),
        )
    except (ValueError, TypeError, RuntimeError) as error:
        raise BadRowError("not a tuple (x, edge_attr, edge_index, y) of fitting tensors") from error
    if len(graph.y) != len(graph.x) or graph.edge_attr.size(0) != graph.edge_index.size(1):
        raise BadRowError(f"{len(graph.x)} nodes with {len(graph.y)} labels do not fit together")
    graph.y = _renumbered(graph.y) if coco else graph.y
    return graph


def _renumbered(labels: torch.Tensor) -> torch.Tensor:
    """COCO's numbers 0 to 90 as 0 to 80, which leaves out those that no object has."""
    known = [number for number in range(91) if number not in _COCO_GAPS]
    table = torch.full((91,), -2)
    table[known] = torch.arange(len(known))
    inside = (labels >= 0) & (labels < 91)
    if not bool(inside.all()) or bool((table[labels] < 0).any()):
        raise BadRowError(f"its labels are not COCO's ({labels.min()} to {labels.max()})")
    return table[labels]
