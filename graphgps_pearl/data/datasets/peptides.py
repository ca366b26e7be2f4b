"""Peptides-struct and Peptides-func of the Long Range Graph Benchmark: 15,535 peptides on OGB's atom
features.

Two public forms of the same graphs: LRGB's CSV of SMILES with a pickled split (``dataset.format: OGB``,
``name: peptides-structural`` or ``peptides-functional``, as GraphGPS spells it), and PyG's zip of ready
tensors (``format: PyG-LRGB``, ``name: Peptides-struct`` or ``Peptides-func``). Either spelling reads either
form from disk.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import (
    TRAIN_VAL_TEST,
    BadRowError,
    DatasetSpec,
    Facts,
    Items,
    Source,
    joined,
)
from graphgps_pearl.data.cache import checksum
from graphgps_pearl.data.csv_table import CsvTable, number, read_columns
from graphgps_pearl.data.download import fetch_file, fetch_zip, files_in, locate
from graphgps_pearl.data.pickles import read_index_lists, read_tensors
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError

_MOST_BYTES = 4 << 30
_DROPBOX = "https://www.dropbox.com/s/"
_SPLIT_MD5 = "5a0114bdadc80b94fc7ae974f13ef061"
_SPLIT_FILES = (
    "splits_random_stratified_peptide_structure.pickle",
    "splits_random_stratified_peptide.pickle",
)
_FACTS = Facts({"train": 10_873, "val": 2_331, "test": 2_331}, 2_344_859, 4_773_974)


STRUCT_TARGETS = (
    *(f"Inertia_mass_{axis}" for axis in "abc"),
    *(f"Inertia_valence_{axis}" for axis in "abc"),
    *(f"length_{axis}" for axis in "abc"),
    "Spherocity",
    "Plane_best_fit",
)


@dataclass(frozen=True)
class _Task:
    """What tells the two datasets apart: names, targets, public files."""

    name: str
    folder: str
    task_type: str
    targets: tuple[str, ...]
    csv_md5: dict[str, str]  # file name -> checksum; the first is the one that is downloaded
    csv_url: str
    split_url: str
    zip_url: str
    zip_folder: str


_STRUCT = _Task(
    name="Peptides-struct",
    folder="peptides-structural",
    task_type="regression",
    targets=STRUCT_TARGETS,
    csv_md5={
        "peptide_structure_normalized_dataset.csv.gz": "c240c1c15466b5c907c63e180fa8aa89",
        "peptide_structure_dataset.csv.gz": "9786061a34298a0684150f2e4ff13f47",
    },
    csv_url=f"{_DROPBOX}0d4aalmq4b4e2nh/peptide_structure_normalized_dataset.csv.gz?dl=1",
    split_url=f"{_DROPBOX}9dfifzft1hqgow6/{_SPLIT_FILES[0]}?dl=1",
    zip_url=f"{_DROPBOX}zgv4z8fcpmknhs8/peptidesstruct.zip?dl=1",
    zip_folder="peptidesstruct",
)
_FUNC = _Task(
    name="Peptides-func",
    folder="peptides-functional",
    task_type="classification_multilabel",
    targets=(
        "antifungal",
        "cell_cell_communication",
        "anticancer",
        "drug_delivery_vehicle",
        "antimicrobial",
        "antiviral",
        "antihypertensive",
        "antibacterial",
        "antiparasitic",
        "toxic",
    ),
    csv_md5={"peptide_multi_class_dataset.csv.gz": "701eb743e899f4d793f0e13c8fa5a1b4"},
    csv_url=f"{_DROPBOX}ol2v01usvaxbsr8/peptide_multi_class_dataset.csv.gz?dl=1",
    split_url=f"{_DROPBOX}j4zcnx2eipuo0xz/{_SPLIT_FILES[1]}?dl=1",
    zip_url=f"{_DROPBOX}ycsq37q8sxs1ou8/peptidesfunc.zip?dl=1",
    zip_folder="peptidesfunc",
)


@dataclass(frozen=True)
class _Csv:
    """LRGB's form: a table of SMILES, and a pickle with the rows of each split."""

    table: Path
    split: Path

    def fingerprint(self, task: _Task, memory: Path, public_only: bool) -> dict[str, str]:
        """Checksums of the files; DataError if they must be the public ones and are not."""
        marks = {"table": checksum(self.table, memory), "split": checksum(self.split)}
        # A shifted row or column would train without complaint.
        for file, mark, wanted in (
            (self.table, marks["table"], tuple(task.csv_md5.values())),
            (self.split, marks["split"], (_SPLIT_MD5,)),
        ):
            if public_only and mark not in wanted:
                raise DataError(
                    f"{file}: has checksum {mark}, the public file has {' or '.join(wanted)}; "
                    f"get it again, or set dataset.check_totals False if it is a file of your own"
                )
        return {**marks, **molecules.versions()}

    def items(self, task: _Task) -> Items:
        structural = task is _STRUCT
        columns = ("smiles", *(task.targets if structural else ("labels",)))
        table = read_columns(self.table, dict.fromkeys(columns, "dataset.path"))
        splits = read_index_lists(self.split, TRAIN_VAL_TEST)
        rows = [row for part in splits.values() for row in part]
        if not all(0 <= row < len(table) for row in rows) or len(set(rows)) != len(rows):
            raise DataError(f"{self.split}: names rows twice or beyond the {len(table):,} of {self.table}")
        moments = _standardisation(table, task.targets) if structural else None

        def graph(i: int) -> Data:
            smiles, *cells = table.cells(i)
            values = _numbers(cells, task.targets) if structural else _labels(cells[0], len(task.targets))
            data, _ = molecules.spelled_graph(molecules.parse(smiles), "PyG-LRGB", "ogb")
            # In double precision until the end, as the public standardised file was made.
            y = torch.tensor([values], dtype=torch.double)
            data.y = (y if moments is None else (y - moments[0]) / moments[1]).float()
            return data

        items = Items(
            str(self.table), len(table), graph, table.where, splits, smiles=lambda i: table.cells(i)[0]
        )
        if moments is not None:
            items.target_mean, items.target_std = moments[0].float(), moments[1].float()
        return items


@dataclass(frozen=True)
class _Tensors:
    """PyG's form: one file of (x, edge_attr, edge_index, y) tuples per split."""

    files: dict[str, Path]

    def fingerprint(self, task: _Task, memory: Path, public_only: bool) -> dict[str, str]:
        return {split: checksum(file, memory) for split, file in self.files.items()}

    def items(self, task: _Task) -> Items:
        rows, splits = joined({split: read_tensors(file) for split, file in self.files.items()})

        def graph(i: int) -> Data:
            try:
                x, edge_attr, edge_index, y = rows[i][2]
                return Data(
                    x=x.long().view(-1, 9),
                    edge_attr=edge_attr.long().view(-1, 3),
                    edge_index=edge_index.long().view(2, -1),
                    y=y.float().view(1, len(task.targets)),
                )
            except (TypeError, ValueError, AttributeError, RuntimeError) as error:
                raise BadRowError("not a tuple (x, edge_attr, edge_index, y) of fitting tensors") from error

        def where(i: int) -> str:
            split, row, _ = rows[i]
            return f"graph {row} of {split}.pt"

        folder = next(iter(self.files.values())).parent
        return Items(str(folder), len(rows), graph, where, splits)


class Peptides(Source):
    """x [N, 9], edge_attr [E, 3], y [1, 11] or [1, 10]."""

    task: _Task
    ready_tensors = False  # which public form a download takes

    def spec(self) -> DatasetSpec:
        """OGB features; 11 regression targets or 10 labels."""
        self.features("ogb")
        task = self.task
        return DatasetSpec(task.name, task.task_type, 9, 3, len(task.targets), task.targets)

    def facts(self) -> Facts:
        """Sizes of the splits, atoms and bonds."""
        return _FACTS

    def fingerprint(self) -> dict[str, Any]:
        """The files' checksums, and RDKit's version where it makes the graphs."""
        memory = self.dir / "prepared" / "checksums.json"
        return dict(self._files().fingerprint(self.task, memory, self.cfg.dataset.check_totals))

    def items(self) -> Items:
        """Peptides in the files' order."""
        return self._files().items(self.task)

    def _files(self) -> _Csv | _Tensors:
        csv_names, split_names = " or ".join(self.task.csv_md5), " or ".join(_SPLIT_FILES)
        wanted = f"{csv_names} with {split_names}, or PyG's train.pt, val.pt and test.pt"
        folder = self.dir / self.task.folder
        # mypy takes the union for an object
        return locate(self, folder, self._look, self._fetch, wanted)  # type: ignore[return-value]

    def _look(self, place: Path) -> _Csv | _Tensors | None:
        if place.is_file():
            folders, tables = [place.parent], [place]
        else:
            folders = [place, place / "raw", place / self.task.folder, place / self.task.folder / "raw"]
            tables = [folder / name for name in self.task.csv_md5 for folder in folders]
        for table in tables:
            for split in (f / name for f in (table.parent, table.parent.parent) for name in _SPLIT_FILES):
                if table.is_file() and split.is_file():
                    return _Csv(table, split)
        files = files_in(folders, {split: f"{split}.pt" for split in TRAIN_VAL_TEST})
        return None if files is None else _Tensors(files)

    def _fetch(self, folder: Path) -> None:
        raw = folder / "raw"
        if self.ready_tensors:
            archive = folder / f"{self.task.zip_folder}.zip"
            members = {f"{archive.stem}/{s}.pt": raw / f"{s}.pt" for s in TRAIN_VAL_TEST}
            fetch_zip(self.task.zip_url, archive, None, members, _MOST_BYTES)  # no published checksum
            return
        name, md5 = next(iter(self.task.csv_md5.items()))
        fetch_file(self.task.csv_url, raw / name, f"md5:{md5}")
        split = _SPLIT_FILES[0] if self.task is _STRUCT else _SPLIT_FILES[1]
        fetch_file(self.task.split_url, folder / split, f"md5:{_SPLIT_MD5}")


@register_dataset("OGB", "peptides-structural")
class PeptidesStructural(Peptides):
    """Peptides-struct: 11 standardised quantities of a conformer."""

    task = _STRUCT


@register_dataset("OGB", "peptides-functional")
class PeptidesFunctional(Peptides):
    """Peptides-func: 10 functions, several of which may hold."""

    task = _FUNC


@register_dataset("PyG-LRGB", "Peptides-struct", "peptides-struct")
class PyGPeptidesStruct(PeptidesStructural):
    """Peptides-struct, downloaded as PyG's LRGBDataset does."""

    ready_tensors = True


@register_dataset("PyG-LRGB", "Peptides-func", "peptides-func")
class PyGPeptidesFunc(PeptidesFunctional):
    """Peptides-func, downloaded as PyG's LRGBDataset does."""

    ready_tensors = True


def _numbers(cells: list[str], names: tuple[str, ...]) -> list[float]:
    return [number(cell, name) for cell, name in zip(cells, names, strict=True)]


def _labels(cell: str, count: int) -> list[float]:
    """``[0, 1, ...]`` written as text."""
    try:
        labels = json.loads(cell)
    except ValueError:
        labels = None
    if not isinstance(labels, list) or len(labels) != count or not all(label in (0, 1) for label in labels):
        raise BadRowError(f"labels {molecules.shorten(cell)} are not a list of {count} zeros and ones")
    return [float(label) for label in labels]


def _standardisation(table: CsvTable, names: tuple[str, ...]) -> tuple[Tensor, Tensor] | None:
    """Mean and deviation of each target over all rows, as the benchmark takes them; None if already 0 and
    1."""
    values = []
    for i in range(len(table)):
        try:
            values.append(_numbers(table.cells(i)[1:], names))
        except BadRowError:
            continue  # reported with its row when its graph is made
    if len(values) < 2:
        raise DataError(f"{table.file}: fewer than two rows have all {len(names)} targets")
    matrix = np.asarray(values, dtype=np.float64)
    mean, std = matrix.mean(axis=0), matrix.std(axis=0, ddof=1)
    if np.abs(mean).max() < 1e-3 and np.abs(std - 1).max() < 1e-3:
        return None
    if std.min() <= 0:
        raise DataError(f"{table.file}: target {names[int(std.argmin())]!r} is the same in all rows")
    return torch.from_numpy(mean), torch.from_numpy(std)
