"""PCQM4Mv2: 3.7 million molecules, the gap between HOMO and LUMO, of OGB's large-scale challenge.

The public zip has a CSV of SMILES and the gap in eV, and the rows of train, valid and two test sets without
labels. As in GraphGPS (``dataset.format: OGB``, ``name: PCQM4Mv2-full`` or ``PCQM4Mv2-subset``), 150,000
training molecules drawn with seed 42 are for validation and the public valid set is for test; the subset has
a tenth of the training molecules and 50,000 for validation. RDKit and OGB's features make the graphs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import BROKEN, DatasetSpec, Facts, Items, Source, as_target, ranges
from graphgps_pearl.data.download import checksums, fetch_zip, files_in, locate
from graphgps_pearl.data.pickles import read_index_arrays
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line
from graphgps_pearl.unpacking import open_gzip

_URL, _MD5 = "http://ogb-data.stanford.edu/data/lsc/pcqm4m-v2.zip", "65b742bafca5670be4497499db7d361b"
_FILES = {"table": "raw/data.csv.gz", "split": "split_dict.pt"}
_MOST_BYTES = 4 << 30
_VALIDATION, _SEED = 150_000, 42
_TRAIN, _TEST = 3_378_606, 73_545


@register_dataset("OGB", "PCQM4Mv2-full", "PCQM4Mv2-subset")
class PCQM4Mv2(Source):
    """x [N, 9], edge_attr [E, 3], y [1, 1] in eV."""

    def spec(self) -> DatasetSpec:
        """One regression target."""
        self.features("ogb")
        return DatasetSpec(self.cfg.dataset.name, "regression", 9, 3, 1, ("homolumogap",))

    def facts(self) -> Facts:
        """Sizes of the splits."""
        train, val = _TRAIN - _VALIDATION, _VALIDATION
        if self._part():
            train, val = train // 10, 50_000
        return Facts({"train": train, "val": val, "test": _TEST})

    def fingerprint(self) -> dict[str, Any]:
        """The files' checksums, and RDKit's version."""
        return {**checksums(self, self._files()), **molecules.versions()}

    def items(self) -> Items:
        """Molecules of the three splits, one after the other; those of the public test sets have no label."""
        table, split_file = self._files().values()
        smiles, gaps = _read(table)
        public = read_index_arrays(split_file, ("train", "valid"))
        order = np.random.default_rng(_SEED).permutation(public["train"])
        held_out = min(_VALIDATION, len(order) // 20 + 1)  # the second for files cut short
        parts = {"train": order[held_out:], "val": order[:held_out], "test": public["valid"]}
        if self._part():
            parts["train"] = parts["train"][: len(parts["train"]) // 10]
            parts["val"] = parts["val"][:50_000]
        rows = np.concatenate(list(parts.values()))
        if rows.min() < 0 or rows.max() >= len(smiles):
            raise DataError(f"{split_file}: names rows beyond the {len(smiles):,} of {table}; get both again")

        def graph(i: int) -> Data:
            data, _ = molecules.spelled_graph(molecules.parse(str(smiles[rows[i]])), "OGB", "ogb")
            data.y = as_target([float(gaps[rows[i]])])
            return data

        return Items(
            str(table),
            len(rows),
            graph,
            lambda i: f"row {rows[i]}",
            ranges(parts),
            smiles=lambda i: str(smiles[rows[i]]),
        )

    def _part(self) -> bool:
        return self.cfg.dataset.name == "PCQM4Mv2-subset"

    def _files(self) -> dict[str, Path]:
        def look(place: Path) -> dict[str, Path] | None:
            return files_in((place, place / "pcqm4m-v2"), _FILES)

        wanted = f"raw/data.csv.gz and split_dict.pt of {_URL}"
        return locate(self, self.dir / "pcqm4m-v2", look, self._fetch, wanted)

    def _fetch(self, folder: Path) -> None:
        members = {f"pcqm4m-v2/{name}": folder / name for name in _FILES.values()}
        fetch_zip(_URL, folder / "pcqm4m-v2.zip", f"md5:{_MD5}", members, _MOST_BYTES)


def _read(table: Path) -> tuple[Any, Any]:
    """Columns of SMILES and gaps."""
    import pandas  # comes with ogb; a reader by rows would take minutes for 3.7 million

    try:
        with open_gzip(table) as content:
            frame = pandas.read_csv(content, usecols=["smiles", "homolumogap"])
        return frame["smiles"].to_numpy(), frame["homolumogap"].to_numpy(np.float64)
    except (OSError, *BROKEN) as error:
        raise DataError(f"{table}: no table of smiles and homolumogap ({first_line(error)})") from error
