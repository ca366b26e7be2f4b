"""What a dataset is to the rest of the package.

A dataset is one :class:`Source`: what is known of it before any byte is read (:class:`DatasetSpec`),
what its graphs depend on (:meth:`Source.fingerprint`, part of the cache key), and its items
(:class:`Items`), each of which becomes one graph or is reported as a row that cannot be used.
"""

from __future__ import annotations

import pickle
import struct
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch_geometric.data import Data
from yacs.config import CfgNode

from graphgps_pearl.errors import ConfigError

TRAIN_VAL_TEST = ("train", "val", "test")

T = TypeVar("T")


@dataclass(frozen=True)
class DatasetSpec:
    """What a model needs to know of a dataset, without loading it; ``None`` where it cannot be known.

    ``task_type`` is ``regression`` (y float [1, dim_out]), ``classification_binary`` (y float [1, 1], one
    logit), ``classification_multilabel`` (y float [1, dim_out]), ``classification`` (y long [1], dim_out
    classes) or ``subtoken_prediction`` (y long [1, 5], ogbg-code2). Missing labels are NaN, or -1 for
    classes. Shapes of a graph: x [N, dim_in], edge_index [2, E], edge_attr [E, edge_dim] ([E] where edge_dim
    is 1 and edges have types; absent where edge_dim is 0).
    ``class_names`` are set where the numbers of the classes are ours and not the data's.

    ``task`` is what is predicted for: with ``node``, y has N rows instead of one; with ``edge``, pairs of
    nodes ``edge_index_labeled`` [2, L] and ``edge_label`` [L] take the place of y. ``transductive``: there is
    one graph, and the splits are sets of its nodes.
    """

    name: str
    task_type: str
    dim_in: int | None = None
    edge_dim: int | None = None
    dim_out: int | None = None
    target_names: tuple[str, ...] = ()
    splits: tuple[str, ...] = TRAIN_VAL_TEST
    select_split: str = "val"
    class_names: tuple[str, ...] = ()
    task: str = "graph"
    transductive: bool = False


@dataclass(frozen=True)
class Facts:
    """Totals that the public dataset is known to have; ``None`` is not checked.

    ``content`` is the digest of all graphs (:meth:`GraphTable.content`), for files without a public checksum.
    """

    split_sizes: Mapping[str, int] | None = None
    num_nodes: int | None = None
    num_edges: int | None = None
    num_graphs: int | None = None
    content: str | None = None


@dataclass(frozen=True)
class SkippedRow:
    """A row that gave no graph: where it stands, and why it cannot be used."""

    file: str
    row: str
    reason: str

    def __str__(self) -> str:
        return f"{self.row} of {self.file}: {self.reason}"


class BadRowError(ValueError):
    """Raised while one item is turned into a graph; the message says what is wrong with it."""


@dataclass
class Items:
    """The rows of a dataset, before they are graphs.

    ``graph(i)`` makes item i's graph or raises :class:`BadRowError`; ``where(i)`` names its row in ``file``.
    ``splits`` maps a split's name to item numbers (of a transductive dataset: to node numbers); None leaves
    splitting to ``dataset.split_mode``. ``smiles(i)`` is the molecule that item i is written as, where it is.
    """

    file: str
    count: int
    graph: Callable[[int], Data]
    where: Callable[[int], str]
    splits: Mapping[str, Sequence[int]] | None = None
    target_mean: Tensor | None = None
    target_std: Tensor | None = None
    smiles: Callable[[int], str] | None = None


def joined(parts: Mapping[str, Sequence[T]]) -> tuple[list[tuple[str, int, T]], dict[str, range]]:
    """The rows of all splits, one after the other, as (split, number in it, row); and where each split is."""
    return [(split, i, row) for split, part in parts.items() for i, row in enumerate(part)], ranges(parts)


def ranges(parts: Mapping[str, Sized]) -> dict[str, range]:
    """The numbers that the rows of each split have if all splits stand one after the other."""
    ends = accumulate(map(len, parts.values()))
    return {
        split: range(end - len(part), end) for (split, part), end in zip(parts.items(), ends, strict=True)
    }


class Source(ABC):
    """One dataset. Subclasses live one per file in ``graphgps_pearl/data/datasets`` and are registered by
    name."""

    #: Raise it when the same bytes begin to give other graphs, so that old caches are not used.
    version = 1
    #: Rows that give no graph are left out without asking (only for files whose bad rows we know).
    bad_rows_are_known = False
    #: Whether there are files that ``dataset.path`` and ``dataset.source`` can name.
    reads_files = True
    #: Whether the fingerprint says enough to reuse prepared graphs.
    cacheable = True
    #: Values of ``dataset.split_mode`` that the source resolves itself, in :attr:`Items.splits`.
    own_split_modes: tuple[str, ...] = ("standard",)
    #: What ``split_mode: standard`` means where the source has no split of its own.
    standard_split_mode: str | None = None
    #: How many splits of its own it has; ``dataset.split_index`` chooses among several.
    num_splits = 1

    def __init__(self, cfg: CfgNode) -> None:
        self.cfg = cfg
        self.dir = Path(cfg.dataset.dir).expanduser()

    @abstractmethod
    def spec(self) -> DatasetSpec:
        """What is known without reading the data."""

    @abstractmethod
    def fingerprint(self) -> dict[str, Any]:
        """Everything the graphs depend on (checksums, settings, library versions), as plain values."""

    def class_names(self) -> tuple[str, ...]:
        """What the data calls its classes, by the number they have here; empty if just so."""
        return ()

    @abstractmethod
    def items(self) -> Items:
        """Read the source and list its items."""

    def facts(self) -> Facts | None:
        """Totals to check after reading, unless ``dataset.check_totals`` is off."""
        return None

    def features(self, usual: str, *others: str) -> str:
        """``dataset.features``, where ``auto`` is this dataset's usual choice; ConfigError if it has no
        such."""
        chosen = self.cfg.dataset.features
        if chosen == "auto":
            return usual
        if chosen not in (usual, *others):
            raise ConfigError(
                f"dataset.features: {chosen!r} is not offered here; use {' or '.join((usual, *others))}"
            )
        return str(chosen)

    def two_class_spec(self, spec: DatasetSpec) -> DatasetSpec:
        """A two-class dataset as ``dataset.task_type`` wants it: one logit (binary), or two classes."""
        if self.cfg.dataset.task_type == "classification":
            return replace(spec, task_type="classification", dim_out=2)
        return replace(spec, task_type="classification_binary", dim_out=1)

    def path(self) -> Path | None:
        """``dataset.path``, the file or folder the user names, or None."""
        given = self.cfg.dataset.path
        return Path(given).expanduser() if given else None


@dataclass
class DataBundle:
    """A loaded dataset: its splits as indexable sequences of graphs, and what preparation had to say.

    ``prepare_seconds`` is 0 when everything came from the cache. ``identity`` is a hash of the graphs
    as the source gives them, with their splits and statistics. ``target_mean`` and ``target_std`` [dim_out]
    are set where the targets were standardised: original = y * std + mean. ``moments`` are the two where
    ``dataset.standardise`` asked for it: then metrics are in the original unit. Targets that come
    standardised, as a benchmark's, are measured as they come.
    """

    spec: DatasetSpec
    splits: dict[str, Sequence[Data]]
    prepare_seconds: float = 0.0
    identity: str = ""
    target_mean: Tensor | None = None
    target_std: Tensor | None = None
    moments: tuple[Tensor, Tensor] | None = None
    skipped: list[SkippedRow] = field(default_factory=list)
    cache_file: Path | None = None

    def in_units(self, values: Tensor) -> Tensor:
        """Predictions or labels [G, dim_out] in the unit of the metrics."""
        return values if self.moments is None else values * self.moments[1] + self.moments[0]


#: What a damaged or hostile stream can raise while it is read as a pickle.
BROKEN = (
    pickle.UnpicklingError,
    ValueError,
    EOFError,
    AssertionError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    RuntimeError,
    OverflowError,
    MemoryError,
    struct.error,
    RecursionError,
    zipfile.BadZipFile,
)


def as_target(values: Sequence[float]) -> Tensor:
    """One graph's float targets as y [1, dim_out]; BadRowError for one that float32 makes infinite."""
    target = torch.tensor([list(values)], dtype=torch.float)
    if bool(target.isinf().any()):
        first = values[int(target.isinf()[0].nonzero()[0])]
        raise BadRowError(f"the label {first:g} is beyond the range of float32 (3.4e38)")
    return target


def class_target(label: int, task_type: str) -> Tensor:
    """A class as y: float [1, 1] for ``classification_binary`` (one logit), long [1] for
    ``classification``."""
    return class_targets(torch.tensor([label]), task_type)


def class_targets(labels: Tensor, task_type: str) -> Tensor:
    """Classes [N] as y: float [N, 1] for ``classification_binary``, long [N] for ``classification``."""
    return labels.float().view(-1, 1) if task_type == "classification_binary" else labels.long().view(-1)
