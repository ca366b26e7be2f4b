"""What a trained model has to know of its data once the data is gone, as plain values that JSON holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from graphgps_pearl.errors import DataError

#: Formats of datasets whose graphs are made from SMILES by :mod:`graphgps_pearl.data.molecules`.
SMILES_FORMATS = ("embedded", "csv", "OGB", "PyG-LRGB", "DrugOOD")

_PEPTIDES = {f"Inertia_{kind}_{axis}": "Å²" for kind in ("mass", "valence") for axis in "abc"}
_PEPTIDES |= {f"length_{axis}": "Å" for axis in "abc"} | {"Plane_best_fit": "Å"}
#: Units of the targets of known datasets, by name; others have none that we know of.
UNITS = {"peptides-3d": _PEPTIDES, "Peptides-struct": _PEPTIDES}


@dataclass(frozen=True)
class ModelFacts:
    """The data's side of a model: sizes, names, and how a prediction becomes a quantity.

    ``target_mean`` and ``target_std`` [dim_out] are those of standardised targets (original = y * std +
    mean), else None. ``metrics`` are the values of the weights' epoch, as ``<split>_<metric>``.
    """

    name: str
    dataset: str
    task_type: str
    dim_in: int
    edge_dim: int
    dim_out: int
    target_names: tuple[str, ...]
    target_units: tuple[str, ...]
    class_names: tuple[str, ...] = ()
    target_mean: tuple[float, ...] | None = None
    target_std: tuple[float, ...] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    parameters: Mapping[str, int] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Lists, numbers and strings."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> ModelFacts:
        """Inverse of :meth:`to_json`; ``where`` names the file in errors."""
        known = {name: content[name] for name in cls.__dataclass_fields__ if name in content}
        for name in ("target_names", "target_units", "class_names", "target_mean", "target_std"):
            if isinstance(known.get(name), list):
                known[name] = tuple(known[name])
        try:
            facts = cls(**known)
            widths = {len(v) for v in (facts.target_mean, facts.target_std) if v is not None}
        except TypeError as error:
            raise DataError(f"{where}: is not a model's description ({error})") from None
        sizes = (facts.dim_in, facts.edge_dim, facts.dim_out)
        if facts.class_names:
            widths.add(len(facts.class_names))
        if not all(isinstance(size, int) and size >= 0 for size in sizes) or widths - {facts.dim_out}:
            raise DataError(f"{where}: the sizes of inputs, targets and their statistics do not fit together")
        return facts

    @property
    def columns(self) -> tuple[str, ...]:
        """One name per value predicted: ``pred_logS [unit]``, ``prob_toxic``, ``prob_class=2``."""
        if self.task_type == "regression":
            units = self.target_units or ("",) * self.dim_out
            names = self._target_names()
            return tuple(
                f"pred_{name} [{unit}]" if unit else f"pred_{name}"
                for name, unit in zip(names, units, strict=True)
            )
        if self.task_type == "classification":
            target = self.target_names[0] if self.target_names else "class"
            return tuple(f"prob_{target}={name}" for name in self.class_names or range(self.dim_out))
        return tuple(f"prob_{name}" for name in self._target_names())

    def _target_names(self) -> tuple[str, ...]:
        if len(self.target_names) == self.dim_out:
            return self.target_names
        return tuple(f"target_{number}" for number in range(self.dim_out))


def units_of(dataset: str, target_names: tuple[str, ...]) -> tuple[str, ...]:
    """The unit of every target, '' where it has none or none is known."""
    known = UNITS.get(dataset, {})
    return tuple(known.get(name, "") for name in target_names)
