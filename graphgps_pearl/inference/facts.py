"""What a trained model has to know of its data once the data is gone, as plain values that JSON holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from graphgps_pearl.errors import DataError
from graphgps_pearl.vocabulary import NAME_LENGTH, NAME_WORDS, TASK_TYPES

#: Formats of datasets whose graphs are made from SMILES by :mod:`graphgps_pearl.data.molecules`.
SMILES_FORMATS = ("embedded", "csv", "OGB", "PyG-LRGB", "DrugOOD")

_PEPTIDES = {f"Inertia_{kind}_{axis}": "Å²" for kind in ("mass", "valence") for axis in "abc"}
_PEPTIDES |= {f"length_{axis}": "Å" for axis in "abc"} | {"Plane_best_fit": "Å"}
#: Units of the targets of known datasets, by name; others have none that we know of.
UNITS = {"peptides-3d": _PEPTIDES, "Peptides-struct": _PEPTIDES}


_MOST = 1_000_000  # inputs, targets, names: far beyond any model, far below what fills a memory


def _is_name(value: object) -> bool:
    """Text that a terminal shows and does not obey."""
    return isinstance(value, str) and value.isprintable() and len(value) <= 1000


def _is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MOST


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _are_names(value: object) -> bool:
    return isinstance(value, tuple) and len(value) <= _MOST and all(map(_is_name, value))


def _are_statistics(value: object) -> bool:
    """None, or finite numbers."""
    return value is None or (isinstance(value, tuple) and all(_is_number(v) and isfinite(v) for v in value))


def _maps_to(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, Mapping) and all(_is_name(key) and fits(held) for key, held in value.items())
    )


_NAME = (_is_name, "a name of printable characters")
_SIZE = (_is_size, f"a whole number from 0 to {_MOST:,}")
_NAMES = (_are_names, "a list of names of printable characters")
_STATISTICS = (_are_statistics, "null or a list of finite numbers")
#: What each field of a model's description may be: a test, and words for it.
_ALLOWED: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("name", "dataset", "chosen"), _NAME),
    "task": (lambda value: value in ("graph", "node", "edge"), "graph, node or edge"),
    "task_type": (lambda value: value in TASK_TYPES, f"one of {', '.join(TASK_TYPES)}"),
    **dict.fromkeys(("dim_in", "edge_dim", "dim_out"), _SIZE),
    **dict.fromkeys(("target_names", "target_units", "class_names"), _NAMES),
    **dict.fromkeys(("target_mean", "target_std"), _STATISTICS),
    "metrics": (_maps_to(_is_number), "numbers by name"),
    "parameters": (_maps_to(lambda value: type(value) is int), "whole numbers by name"),
    "versions": (_maps_to(_is_name), "names by name"),
}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class ModelFacts:
    """The data's side of a model: sizes, names, and how a prediction becomes a quantity.

    ``target_mean`` and ``target_std`` [dim_out] are those of standardised targets (original = y * std +
    mean), else None. ``task`` is what is predicted for. ``metrics`` are the values of the weights' epoch, as
    ``<split>_<metric>``; ``chosen`` says why these weights.
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
    chosen: str = ""
    task: str = "graph"

    def to_json(self) -> dict[str, Any]:
        """Lists, numbers and strings."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any], where: str) -> ModelFacts:
        """Inverse of :meth:`to_json`; ``where`` names the file in errors. Every type and size is checked."""
        known = {name: content[name] for name in cls.__dataclass_fields__ if name in content}
        for name, value in known.items():
            if isinstance(value, list):
                known[name] = tuple(value)
        for name, (fits, allowed) in _ALLOWED.items():
            if name in known and not fits(known[name]):
                raise DataError(f"{where}: {name} is {_short(content[name])}, not {allowed}")
        try:
            facts = cls(**known)
        except TypeError as error:
            raise DataError(f"{where}: is not a model's description ({error})") from None
        wrong = facts._misfit()
        if wrong:
            raise DataError(f"{where}: {wrong}; export the model again")
        return facts

    def _misfit(self) -> str:
        """Which values do not fit together, in words; '' if all do."""
        for name in ("target_mean", "target_std", "class_names"):
            value = getattr(self, name)
            if value and len(value) != self.dim_out:
                return f"{name} has {len(value)} values for dim_out {self.dim_out}"
        if (self.target_mean is None) != (self.target_std is None):
            return "target_mean and target_std are only of use together, and one is missing"
        if self.target_units and len(self.target_units) != len(self.target_names):
            return f"{len(self.target_units)} target_units for {len(self.target_names)} target_names"
        return ""

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
        if self.task_type == "subtoken_prediction":
            places = range(NAME_LENGTH)
            return tuple(f"prob_word{place}={word}" for place in places for word in range(NAME_WORDS))
        return tuple(f"prob_{name}" for name in self._target_names())

    def _target_names(self) -> tuple[str, ...]:
        if len(self.target_names) == self.dim_out:
            return self.target_names
        return tuple(f"target_{number}" for number in range(self.dim_out))


def units_of(dataset: str, target_names: Sequence[str], in_units: bool) -> tuple[str, ...]:
    """The unit of every target, '' where it has none or none is known.

    ``in_units``: whether predictions are taken back to original units; standardised targets have none.
    """
    known = UNITS.get(dataset, {}) if in_units else {}
    return tuple(known.get(name, "") for name in target_names)
