"""Your own molecules: ``dataset.format: csv``, a table (.csv, .tsv, also .gz) with a column of SMILES and
columns of targets.

    dataset:
      format: csv
      name: my-solubility            # any name; it labels caches and results
      path: solubility.csv
      smiles_column: smiles
      target_columns: [logS]
      task: graph
      task_type: regression          # classification, classification_binary or classification_multilabel
      split_mode: scaffold           # standard (a split column), random, scaffold, size, cv-kfold-5, ...

Empty cells are missing labels (NaN, left out of loss and metrics), except in ``classification``, whose one
target column holds class names or numbers. A yes/no target may be 0 and 1 or words (yes and no, true and
false, active and inactive). Rows without any label are reported. Targets of a regression are standardised by
the training split unless ``standardise: False`` is set.
"""

from __future__ import annotations

import logging
import math
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.data import molecules, splits
from graphgps_pearl.data.base import TRAIN_VAL_TEST, BadRowError, DatasetSpec, Items, Source, as_target
from graphgps_pearl.data.csv_table import MISSING, CsvTable, header_of, number, read_columns, yes_or_no
from graphgps_pearl.data.download import checksums
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.delimited import find_column
from graphgps_pearl.errors import ConfigError, DataError

log = logging.getLogger(__name__)

_SPLIT_WORDS = dict.fromkeys(("train", "training"), "train")
_SPLIT_WORDS |= dict.fromkeys(("val", "valid", "validation"), "val") | {"test": "test"}


@register_dataset("csv")
class CsvFile(Source):
    """Molecules of a CSV file; features OGB's or AttentiveFP's."""

    version = 5
    own_split_modes = ("standard", "scaffold", "size")

    def spec(self) -> DatasetSpec:
        """One output per target column; for ``classification``, as many as classes, known after reading."""
        chosen = self.cfg.dataset
        dim_in, edge_dim = molecules.feature_dims(self.features("ogb", "attentivefp"))
        targets = self._targets
        kind = chosen.task_type
        if kind in ("classification", "classification_binary") and len(targets) != 1:
            raise ConfigError(
                f"dataset.target_columns: {kind} wants one column, not {len(targets)}; "
                f"use classification_multilabel for several yes/no columns"
            )
        dim_out = None if kind == "classification" else len(targets)
        return DatasetSpec(chosen.name, kind, dim_in, edge_dim, dim_out, tuple(targets))

    def fingerprint(self) -> dict[str, Any]:
        """The file and every setting that touches its rows."""
        chosen = self.cfg.dataset
        settings = {key: chosen[key] for key in ("smiles_column", "split_column", "task_type")}
        mode = chosen.split_mode if chosen.split_mode in self.own_split_modes else "later"
        settings |= {"targets": self._targets, "mode": mode, "features": self.features("ogb", "attentivefp")}
        settings["split"] = None if mode == "later" else chosen.split
        return {**checksums(self, {"file": self._file}), **settings, **molecules.versions()}

    @cached_property
    def _file(self) -> Path:
        path = self.path()
        if path is None:
            raise ConfigError("dataset.path: is empty; name the CSV file with your molecules")
        if not path.is_file():
            raise DataError(f"dataset.path: {path} is not a file; name the CSV file with your molecules")
        return path

    @cached_property
    def _targets(self) -> list[str]:
        chosen = self.cfg.dataset
        if chosen.target_columns:
            return list(chosen.target_columns)
        header = header_of(self._file, [chosen.smiles_column])
        others = {find_column(header, name) for name in (chosen.smiles_column, chosen.split_column) if name}
        targets = [name for i, name in enumerate(header) if name and i not in others]
        if not targets:
            raise DataError(f"{self._file}: has no column but {chosen.smiles_column!r}; a target is wanted")
        return targets

    def class_names(self) -> tuple[str, ...]:
        """The names or numbers in the target column, where they are not 0 to C - 1."""
        numbered = _class_names(self._table)
        names = sorted(numbered, key=numbered.__getitem__)
        return () if names == [str(number) for number in range(len(names))] else tuple(names)

    def items(self) -> Items:
        """Molecules in the file's order."""
        chosen = self.cfg.dataset
        table = self._table
        classes = _class_names(table) if self.spec().task_type == "classification" else None
        if not chosen.target_columns:
            log.info(
                "%s: dataset.target_columns is empty; targets are %s", self._file, ", ".join(self._targets)
            )
        features = self.features("ogb", "attentivefp")

        def graph(i: int) -> Data:
            smiles, *cells = table.cells(i)[: 1 + len(self._targets)]
            y = self._target(cells) if classes is None else _class_number(cells[0], classes)
            data, _ = molecules.spelled_graph(molecules.parse(smiles), "csv", features)
            data.y = y
            return data

        parts = self._splits(table) if chosen.split_mode in self.own_split_modes else None
        return Items(
            str(self._file), len(table), graph, table.where, parts, smiles=lambda i: table.cells(i)[0]
        )

    @cached_property
    def _table(self) -> CsvTable:
        chosen = self.cfg.dataset
        columns = {chosen.smiles_column: "dataset.smiles_column"}
        columns |= dict.fromkeys(self._targets, "dataset.target_columns")
        if chosen.split_mode == "standard" and chosen.split_column:
            columns[chosen.split_column] = "dataset.split_column"
        return read_columns(self._file, columns)

    def _target(self, cells: list[str]) -> Tensor:
        named = zip(cells, self._targets, strict=True)
        regression = self.cfg.dataset.task_type == "regression"
        try:
            values = [
                number(c, name, missing_allowed=True) if regression else yes_or_no(c, name)
                for c, name in named
            ]
        except BadRowError as error:
            if self.cfg.dataset.target_columns or len(self._targets) == 1:
                raise
            raise BadRowError(f"{error} (all columns are targets: dataset.target_columns is empty)") from None
        if all(math.isnan(value) for value in values):
            raise BadRowError("has no label")
        return as_target(values)

    def _splits(self, table: CsvTable) -> dict[str, list[int]]:
        chosen = self.cfg.dataset
        if chosen.split_mode == "standard":
            return self._column_split(table)
        rows, parsed = [], []
        for i in range(len(table)):
            try:
                parsed.append(molecules.parse(table.cells(i)[0]))
                rows.append(i)
            except BadRowError:
                continue  # reported with its row when its graph is made
        if chosen.split_mode == "scaffold":
            parts = splits.group_split([molecules.scaffold(molecule) for molecule in parsed], chosen.split)
        else:
            parts = splits.size_split([molecule.GetNumAtoms() for molecule in parsed], chosen.split)
        return {name: np.asarray(rows)[part].tolist() for name, part in parts.items()}

    def _column_split(self, table: CsvTable) -> dict[str, list[int]]:
        column = self.cfg.dataset.split_column
        if not column:
            raise ConfigError(
                "dataset.split_column: is empty, but dataset.split_mode is standard; name the column that "
                "says train, val or test, or use dataset.split_mode random, scaffold or size"
            )
        parts: dict[str, list[int]] = {name: [] for name in TRAIN_VAL_TEST}
        for i in range(len(table)):
            if i in table.short:
                continue
            word = table.rows[i][-1].strip().lower()
            if word not in _SPLIT_WORDS:
                raise DataError(
                    f"{self._file}: {table.where(i)}: column {column!r} has {molecules.shorten(word)}, "
                    f"which is not train, val or test"
                )
            parts[_SPLIT_WORDS[word]].append(i)
        return parts


def _class_names(table: CsvTable) -> dict[str, int]:
    """Class name -> number: whole numbers 0 .. C-1 keep theirs, other names are numbered in order."""
    names = {_class_name(table.rows[i][1]) for i in range(len(table)) if i not in table.short}
    names = {name for name in names if name.lower() not in MISSING}
    if len(names) < 2:
        raise DataError(f"{table.file}: the target column has fewer than two classes")
    if len(names) > max(50, len(table) // 10):
        raise DataError(
            f"{table.file}: the target column has {len(names)} different values, too many for classes; "
            f"is dataset.task_type regression meant?"
        )
    if all(name.isdecimal() for name in names) and {int(name) for name in names} == set(range(len(names))):
        return {name: int(name) for name in names}
    return {name: i for i, name in enumerate(sorted(names))}


def _class_name(cell: str) -> str:
    """The cell's text; whole numbers are written alike, since spreadsheets make 1.0 of 1."""
    return re.sub(r"(?<=\d)\.0*$", "", cell.strip())


def _class_number(cell: str, classes: dict[str, int]) -> Tensor:
    if _class_name(cell) not in classes:
        raise BadRowError("has no class")
    return torch.tensor([classes[_class_name(cell)]])
