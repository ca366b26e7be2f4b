"""DrugOOD, ligand-based affinity prediction (``lbap_core_{ic50,ec50}_{assay,scaffold,size}``) from its own
JSON.

Two classes under a domain shift. Five splits keep their names; ``ood_val`` selects the model unless
``dataset.select_split`` names another. Features are the 39/10-dimensional AttentiveFP set of the SPE and
PEARL papers, or OGB's (``dataset.features: ogb``).
"""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from graphgps_pearl.data import molecules
from graphgps_pearl.data.base import BadRowError, DatasetSpec, Facts, Items, Source, class_target, joined
from graphgps_pearl.data.download import checksums, locate
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError
from graphgps_pearl.unpacking import open_gzip

SPLITS = ("train", "iid_val", "iid_test", "ood_val", "ood_test")
_NAMES = [
    f"lbap_core_{measure}_{domain}"
    for measure in ("ic50", "ec50")
    for domain in ("assay", "scaffold", "size")
]
_SIZES = {
    "lbap_core_ec50_assay": (4540, 1502, 1557, 2572, 2490),
    "lbap_core_ec50_size": (4684, 1513, 1753, 2313, 2398),
}
_WHERE = "https://drugood.github.io (its Google Drive folder of realised datasets)"


@register_dataset("DrugOOD", *_NAMES)
class DrugOOD(Source):
    """x [N, 39] and edge_attr [E, 10] floats (or OGB's integers), y the class of ``cls_label``."""

    def spec(self) -> DatasetSpec:
        """Two classes, five splits."""
        name = self.cfg.dataset.name
        dim_in, edge_dim = molecules.feature_dims(self.features("attentivefp", "ogb"))
        spec = DatasetSpec(name, "", dim_in, edge_dim, None, ("active",), SPLITS, "ood_val")
        return self.two_class_spec(spec)

    def facts(self) -> Facts | None:
        """Sizes of the splits, where they are known."""
        sizes = _SIZES.get(self.cfg.dataset.name)
        return Facts(dict(zip(SPLITS, sizes, strict=True))) if sizes else None

    def fingerprint(self) -> dict[str, Any]:
        """The file, the features and RDKit."""
        return {
            **checksums(self, {"file": self._file()}),
            "features": molecules.canonical_mark(self.features("attentivefp", "ogb")),
            "form": self.spec().task_type,
            **molecules.versions(),
        }

    def items(self) -> Items:
        """The rows of all splits, one after the other."""
        file = self._file()
        content = _splits_in(file)
        rows, splits = joined({split: content[split] for split in SPLITS})
        features, form = self.features("attentivefp", "ogb"), self.spec().task_type

        def graph(i: int) -> Data:
            smiles, label = _fields(rows[i][2])
            data, _ = molecules.spelled_graph(molecules.parse(smiles), "DrugOOD", features)
            data.y = class_target(label, form)
            return data

        def where(i: int) -> str:
            split, row, _ = rows[i]
            return f"row {row} of split {split}"

        def smiles(i: int) -> str:
            return _fields(rows[i][2])[0]

        return Items(str(file), len(rows), graph, where, splits, smiles=smiles)

    def _file(self) -> Path:
        name = self.cfg.dataset.name

        def look(place: Path) -> Path | None:
            if place.is_file():
                return place
            folders = (place, place / "DrugOOD", place / "raw")
            candidates = [
                folder / f"{name}{ending}" for folder in folders for ending in (".json", ".json.gz")
            ]
            return next((file for file in candidates if file.is_file()), None)

        wanted = f"put {name}.json there; it cannot be downloaded by a script; get it from {_WHERE}"
        return locate(self, self.dir / "DrugOOD", look, None, wanted)


def _splits_in(file: Path) -> dict[str, list[Any]]:
    try:
        with open_gzip(file) if file.suffix == ".gz" else file.open("rb") as stream:
            content = json.load(stream)
    except (ValueError, EOFError, zlib.error, RecursionError) as error:
        raise DataError(f"{file}: damaged or not JSON ({error}); get it again from {_WHERE}") from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read ({error.strerror or error})") from error
    splits = content.get("split") if isinstance(content, dict) else None
    if not isinstance(splits, dict) or not all(isinstance(splits.get(name), list) for name in SPLITS):
        raise DataError(f"{file}: not DrugOOD's JSON, which has split.{', split.'.join(SPLITS)}")
    return splits


def _fields(row: object) -> tuple[str, int]:
    smiles = row.get("smiles") if isinstance(row, dict) else None
    label = row.get("cls_label") if isinstance(row, dict) else None
    if not isinstance(smiles, str):
        raise BadRowError("has no SMILES")
    if isinstance(label, bool) or label not in (0, 1):
        raise BadRowError(f"cls_label is {label!r}, not 0 or 1")
    return smiles, int(label)
