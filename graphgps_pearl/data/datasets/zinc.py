"""ZINC: molecules with 28 atom and 3 bond types, target penalised logP; 12,000 (``subset``) or 249,456
(``full``).

The public files are PyG's (``torch_geometric.datasets.ZINC``): pickles of dense bond matrices and, for the
subset, index files. Spelled as in GraphGPS: ``dataset.format: PyG-ZINC``, ``dataset.name: subset``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from graphgps_pearl.data.base import TRAIN_VAL_TEST, BadRowError, DatasetSpec, Facts, Items, Source
from graphgps_pearl.data.download import checksums, fetch_file, fetch_zip, files_in, locate
from graphgps_pearl.data.pickles import decode, read_pickle, require_own_bytes
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError

# Its publisher names no checksum: the subset's graphs are checked after reading, against _CONTENT.
_URL = "https://www.dropbox.com/s/feo9qle74kg48gy/molecules.zip?dl=1"
_MOST_BYTES = 4 << 30  # the three pickles take about 1.4 GB
_INDEX_URL = (
    "https://raw.githubusercontent.com/graphdeeplearning/benchmarking-gnns/"
    "b6c407712fa576e9699555e1e035d1e327ccae6c/data/molecules/{}.index"
)
_INDEX_SHA256 = {
    "train": "575d6acd72ac207a95947e2bdd16411ef6fc3faa88c2f55a2c496ea43022a6d8",
    "val": "fe48c38157f0d38e7fc441903a143392eda080511a79e8fb8f60f5c1b0a9c164",
    "test": "6aa50d98976044fb36089afef5b4c991b429ca1c8e009d33a0319e42a2d9b525",
}
_CONTENT = "2c57350e9ff63e6642473a85854d8e4d"
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
        """Published sizes; the subset's totals of nodes and edges, and its content."""
        if self.cfg.dataset.name == "full":
            return Facts(_SIZES["full"])
        return Facts(_SIZES["subset"], 277_864, 597_970, content=_CONTENT)

    def fingerprint(self) -> dict[str, Any]:
        """The raw files' checksums."""
        return checksums(self, self._files())

    def items(self) -> Items:
        """Molecules of the three splits, one after the other."""
        folder = self._files()["train.pickle"].parent
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
            chosen = (content[row] for row in rows)
            require_own_bytes((v for held in chosen if isinstance(held, dict) for v in held.values()), file)

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

    def _files(self) -> dict[str, Path]:
        endings = ("pickle",) if self.cfg.dataset.name == "full" else ("pickle", "index")
        names = [f"{split}.{ending}" for ending in endings for split in TRAIN_VAL_TEST]

        def look(place: Path) -> dict[str, Path] | None:
            folders = (place, place / "raw", place / "ZINC" / "raw")
            return files_in(folders, {name: name for name in names})

        wanted = f"{', '.join(names)} (or a folder raw/ with them)"
        return locate(self, self.dir / "ZINC", look, self._fetch, wanted)

    def _fetch(self, folder: Path) -> None:
        raw = folder / "raw"
        members = {f"molecules/{split}.pickle": raw / f"{split}.pickle" for split in TRAIN_VAL_TEST}
        fetch_zip(_URL, folder / "molecules.zip", None, members, _MOST_BYTES)
        for split, sha256 in _INDEX_SHA256.items():
            fetch_file(_INDEX_URL.format(split), raw / f"{split}.index", f"sha256:{sha256}")


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
    if n == 0 or bonds.shape != (n, n) or target.numel() != 1 or not bool(target.float().isfinite().all()):
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
