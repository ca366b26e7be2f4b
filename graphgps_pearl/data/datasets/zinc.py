"""ZINC: molecules with 28 atom and 3 bond types, target penalised logP; 12,000 (``subset``) or 249,456
(``full``).

The public files are PyG's (``torch_geometric.datasets.ZINC``): pickles of dense bond matrices and, for the
subset, index files. Spelled as in GraphGPS: ``dataset.format: PyG-ZINC``, ``dataset.name: subset``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from graphgps_pearl.data.base import TRAIN_VAL_TEST, BadRowError, DatasetSpec, Facts, Items, Source
from graphgps_pearl.data.cache import checksum
from graphgps_pearl.data.download import fetch_file, locate, unzip
from graphgps_pearl.data.pickles import decode, read_pickle
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError

_URL = "https://www.dropbox.com/s/feo9qle74kg48gy/molecules.zip?dl=1"
_INDEX_URL = (
    "https://raw.githubusercontent.com/graphdeeplearning/benchmarking-gnns/master/data/molecules/{}.index"
)
_SIZES = {
    "subset": {"train": 10_000, "val": 1_000, "test": 1_000},
    "full": {"train": 220_011, "val": 24_445, "test": 5_000},
}


@register_dataset("PyG-ZINC", "subset", "full")
class ZINC(Source):
    """x [N, 1] atom types 0-27, edge_attr [E] bond types 1-3, y [1, 1]."""

    def spec(self) -> DatasetSpec:
        """One regression target."""
        name = f"ZINC-{self.cfg.dataset.name}"
        return DatasetSpec(name, "regression", 1, 1, 1, ("penalised_logP",))

    def facts(self) -> Facts:
        """Published sizes; the subset's totals of nodes and edges."""
        name = self.cfg.dataset.name
        totals = (277_864, 597_970) if name == "subset" else (None, None)
        return Facts(_SIZES[name], *totals)

    def fingerprint(self) -> dict[str, Any]:
        """The raw files' checksums."""
        memory = self.dir / "prepared" / "checksums.json"
        return {file.name: checksum(file, memory) for file in self._files(self._folder()).values()}

    def items(self) -> Items:
        """Molecules of the three splits, one after the other."""
        folder = self._folder()
        molecules: list[tuple[Path, int, dict[str, Any]]] = []
        splits = {}
        for split in TRAIN_VAL_TEST:
            file = folder / f"{split}.pickle"
            content = read_pickle(file)
            if not isinstance(content, list):
                raise DataError(f"{file}: not a list of molecules; download it again")
            rows = self._rows(folder, split, len(content))
            splits[split] = range(len(molecules), len(molecules) + len(rows))
            molecules += [(file, row, content[row]) for row in rows]

        def graph(i: int) -> Data:
            return _graph(*molecules[i])

        def where(i: int) -> str:
            file, row, _ = molecules[i]
            return f"molecule {row} ({file.name})"

        return Items(str(folder), len(molecules), graph, where, splits)

    def _rows(self, folder: Path, split: str, count: int) -> list[int]:
        if self.cfg.dataset.name == "full":
            return list(range(count))
        file = folder / f"{split}.index"
        try:
            rows = [int(number) for number in file.read_text().strip().rstrip(",").split(",")]
        except ValueError as error:
            raise DataError(f"{file}: not a list of numbers ({error}); download it again") from error
        if not all(0 <= row < count for row in rows):
            raise DataError(
                f"{file}: names molecules beyond the {count:,} in {split}.pickle; download both again"
            )
        return rows

    def _files(self, folder: Path) -> dict[str, Path]:
        endings = ("pickle",) if self.cfg.dataset.name == "full" else ("pickle", "index")
        names = [f"{split}.{ending}" for ending in endings for split in TRAIN_VAL_TEST]
        return {name: folder / name for name in names}

    def _folder(self) -> Path:
        def look(place: Path) -> Path | None:
            for folder in (place, place / "raw", place / "ZINC" / "raw"):
                if all(file.is_file() for file in self._files(folder).values()):
                    return folder
            return None

        names = ", ".join(self._files(Path()))
        return locate(self, self.dir / "ZINC", look, self._fetch, f"{names} (or a folder raw/ with them)")

    def _fetch(self, folder: Path) -> None:
        raw, archive = folder / "raw", folder / "molecules.zip"
        fetch_file(_URL, archive)
        unzip(archive, {f"molecules/{split}.pickle": raw / f"{split}.pickle" for split in TRAIN_VAL_TEST})
        archive.unlink()
        for split in TRAIN_VAL_TEST:
            fetch_file(_INDEX_URL.format(split), raw / f"{split}.index")


def _graph(file: Path, row: int, molecule: dict[str, Any]) -> Data:
    """One molecule: a vector of atom types, a dense matrix of bond types (0 = none) and the target."""
    try:
        atoms, bonds, target = (
            decode(molecule[key], file, f"molecule {row}'s {key}")
            for key in ("atom_type", "bond_type", "logP_SA_cycle_normalized")
        )
    except (KeyError, TypeError) as error:
        raise BadRowError("not a molecule with atom_type, bond_type and logP_SA_cycle_normalized") from error
    n = atoms.numel()
    if n == 0 or bonds.shape != (n, n) or target.numel() != 1 or not bool(torch.isfinite(target).all()):
        raise BadRowError(
            f"{n} atoms, bonds {list(bonds.shape)} and target {target.tolist()} do not fit together"
        )
    edge_index = bonds.nonzero().t().contiguous()
    return Data(
        x=atoms.long().view(-1, 1),
        edge_index=edge_index,
        edge_attr=bonds[edge_index[0], edge_index[1]].long(),
        y=target.float().view(1, 1),
    )
