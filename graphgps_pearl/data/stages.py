"""From the files of a dataset to the table that is trained on, stage by stage.

A stage makes a :class:`~graphgps_pearl.data.table.GraphTable` (graphs in memory) and keeps it under its key
(:mod:`~graphgps_pearl.data.cache`: the same on disk). There are two: :func:`read`, the graphs as the source
gives them, and :func:`transform`, these graphs after the transforms, in this process or in several.
"""

from __future__ import annotations

import dataclasses
import io
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torch_geometric.data import Data
from tqdm import tqdm

from graphgps_pearl.data import cache
from graphgps_pearl.data.base import BadRowError, Items, SkippedRow, Source
from graphgps_pearl.data.checks import list_skipped
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import DataError
from graphgps_pearl.memory import require_memory

log = logging.getLogger(__name__)

Transform = Callable[[Data], Data]
View = Callable[[Items], Items]

_STATE = ("graphs", "skipped", "target_mean", "target_std", "splits")
_CHUNK = 2048  # graphs collated at a time, so that a quarter of a million need not be held one by one
_SAMPLE = 32  # graphs from which the cost of all is foretold
_PART = 128  # graphs that a worker hands over at a time


def cache_file(folder: Path, name: str, parts: dict[str, Any]) -> Path:
    """The file of what depends on ``parts``."""
    # A name of the user's own may be anything; it must not leave the folder.
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:60]
    return folder / f"{readable}-{cache.key_of(parts)}.pt"


def stage(source: Source, file: Path, make: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
    """A stage's state and whether it had to be made."""
    state = cache.load(file, _STATE) if source.cacheable else None
    if state is not None:
        return state, False
    state = make()
    if source.cacheable:
        cache.save(state, file)
        # Read back: of a large file, which is mapped, only what is used comes to memory.
        state = cache.load(file, _STATE)
        if state is None:
            raise DataError(f"{file}: cannot be read back right after it was written; is the disk in order?")
    return state, True


def read(source: Source, file: Path, view: View | None = None) -> dict[str, Any]:
    """First stage: the items' graphs, and which rows gave none."""
    began = time.perf_counter()
    items = source.items() if view is None else view(source.items())
    nodes = source.spec().transductive
    if not nodes:
        _check_splits(items, items.count, "graph", source.spec().name)
    chosen = _choose(items, source.cfg.dataset.subset)
    position: dict[int, int] = {}
    skipped: list[SkippedRow] = []

    def graphs() -> Iterator[Data]:
        for i in tqdm(chosen, desc="reading graphs", unit="graph", disable=None, leave=False):
            try:
                graph = items.graph(i)
            except BadRowError as error:
                skipped.append(SkippedRow(items.file, items.where(i), str(error)))
                continue
            position[i] = len(position)
            yield graph

    table = _collate(graphs())
    if nodes and len(table):
        _check_splits(items, int(table.num_nodes().sum()), "node", source.spec().name)
    _log_rate("read", len(table), time.perf_counter() - began, source.spec().name)
    if skipped:
        list_skipped(skipped, file)
    state: dict[str, Any] = {
        "graphs": table.to_state(),
        "skipped": [dataclasses.astuple(row) for row in skipped],
        "target_mean": items.target_mean,
        "target_std": items.target_std,
        "splits": None,
    }
    if items.splits is not None:
        state["splits"] = {
            name: torch.tensor([i if nodes else position[i] for i in part if nodes or i in position]).long()
            for name, part in items.splits.items()
        }
    return state


def _check_splits(items: Items, count: int, what: str, name: str) -> None:
    """DataError where a split names a graph (or node) that is not there; a line in the log where it names one
    that is in a split before it, or one twice."""
    seen = np.zeros(count, bool)
    for split, part in (items.splits or {}).items():
        index = np.asarray(part, dtype=np.int64)
        outside = index[(index < 0) | (index >= count)]
        if len(outside):
            raise DataError(
                f"{items.file}: split {split!r} of {name} has {what} {outside[0]}, there are 0 to "
                f"{count - 1}; correct the split, or get the files again"
            )
        again = len(index) - int((~seen[np.unique(index)]).sum())
        if again:
            log.warning(
                "%s: %d %ss of split %r are in it twice or in a split before it", name, again, what, split
            )
        seen[index] = True


def _choose(items: Items, subset: int) -> list[int]:
    """All items, or about ``subset`` of them: the same share of every split, always the same ones."""
    if subset <= 0 or subset >= items.count:
        return list(range(items.count))
    rng = np.random.default_rng(0)
    chosen: list[int] = []
    for part in items.splits.values() if items.splits is not None else [range(items.count)]:
        count = max(1, round(len(part) * subset / items.count)) if len(part) else 0
        chosen += [part[int(i)] for i in rng.permutation(len(part))[:count]]
    return sorted(set(chosen))


def _collate(graphs: Iterator[Data]) -> GraphTable:
    tables: list[GraphTable] = []
    while pending := list(islice(graphs, _CHUNK)):
        tables.append(GraphTable.from_graphs(pending, len(tables) * _CHUNK))
    return GraphTable.join(tables)


def transform(
    state: dict[str, Any], transforms: Sequence[Transform], name: str, num_workers: int
) -> dict[str, Any]:
    """Second stage: every graph through every transform."""
    parts = _Parts(GraphTable.from_state(state["graphs"]), transforms, name)
    _announce(parts)
    began = time.perf_counter()
    with tqdm(total=len(parts.graphs), desc="transforms", unit="graph", disable=None, leave=False) as bar:
        tables = []
        for table in parts.tables(num_workers):
            tables.append(table)
            bar.update(len(table))
    transformed = GraphTable.join(tables)
    if transformed.graph_class is not graph_class(transforms):
        made = transformed.graph_class.__name__
        raise TypeError(f"a transform makes graphs of class {made}, which its graph_class does not say")
    _log_rate("transformed", len(transformed), time.perf_counter() - began, name)
    return {**state, "graphs": transformed.to_state()}


def _announce(parts: _Parts) -> None:
    """Say what a long preparation will take, from some graphs spread over the dataset."""
    count = len(parts.graphs)
    if count < 10 * _SAMPLE:
        return
    began = time.process_time()
    sample = GraphTable.from_graphs([parts.graph(i) for i in range(0, count, count // _SAMPLE)])
    seconds = (time.process_time() - began) / len(sample)
    size = sample.num_bytes() / len(sample)
    # Twice: the parts, and the table that they are joined to.
    remedy = "use fewer eigenvectors or another encoding, or dataset.subset"
    require_memory(2 * count * size, "cpu", f"preparing {count} graphs of {parts.name}", remedy)
    log.info(
        "preparing %d graphs of %s: about %.0f MB (%.1f kB each) and %.0f s of processor time",
        *(count, parts.name, count * size / 1e6, size / 1e3, count * seconds),
    )


def _log_rate(what: str, count: int, seconds: float, name: str) -> None:
    rate = f" ({1000 * seconds / count:.2f} s per 1000 graphs)" if count else ""
    log.info("%s %d graphs of %s in %.1f s%s", what, count, name, seconds, rate)


def graph_class(transforms: Sequence[Transform]) -> type[Data]:
    """What the last transform with a ``graph_class`` makes of a graph: a Data with its own __inc__, say."""
    declared: list[type[Data]] = [t.graph_class for t in transforms if hasattr(t, "graph_class")]
    return declared[-1] if declared else Data


class _Parts(Dataset[tuple[bytes, type[Data], str | None]]):
    """The graphs of a table in parts, each graph through every transform when its part is asked for."""

    def __init__(self, table: GraphTable, transforms: Sequence[Transform], name: str) -> None:
        self.graphs, self.transforms, self.name = table, transforms, name

    def __len__(self) -> int:
        return -(-len(self.graphs) // _PART)

    def graph(self, i: int) -> Data:
        graph = self.graphs[i]
        for transform in self.transforms:
            try:
                graph = transform(graph)
            except (ValueError, RuntimeError, IndexError) as error:
                raise DataError(
                    f"graph {i} of {self.name} ({graph.num_nodes} nodes): {transform!r}: {error}"
                ) from error
        return graph

    def table(self, number: int) -> GraphTable:
        start, stop = number * _PART, min((number + 1) * _PART, len(self.graphs))
        return GraphTable.from_graphs([self.graph(i) for i in range(start, stop)], start)

    def __getitem__(self, number: int) -> tuple[bytes, type[Data], str | None]:
        """A part as bytes (shared tensors would keep a file open each), or what a user is told."""
        try:
            table = self.table(number)
        except DataError as error:
            return b"", Data, str(error)
        content = io.BytesIO()
        torch.save(table.to_state(), content)
        return content.getvalue(), table.graph_class, None

    def tables(self, num_workers: int) -> Iterator[GraphTable]:
        """All parts in order; ``num_workers`` processes make them, or this one."""
        if num_workers == 0:
            yield from (self.table(number) for number in range(len(self)))
            return
        own = torch.Generator()  # a loader draws a number; the global generator is for the weights
        loader = DataLoader(self, batch_size=None, num_workers=num_workers, generator=own)
        for content, graph_class, error in loader:
            if error is not None:
                raise DataError(error)
            yield GraphTable.from_state(torch.load(io.BytesIO(content), weights_only=True), graph_class)
