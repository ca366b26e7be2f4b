"""From ``cfg.dataset`` to splits of graphs: read, featurise, transform, cache.

Two stages, each cached under its own key: the graphs as the source gives them, and these graphs after the
transforms. A changed encoding thus repeats its own work only.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm
from yacs.config import CfgNode

from graphgps_pearl import __version__
from graphgps_pearl.data import cache, registry, splits
from graphgps_pearl.data.base import (
    TRAIN_VAL_TEST,
    BadRowError,
    DataBundle,
    DatasetSpec,
    Items,
    SkippedRow,
    Source,
)
from graphgps_pearl.data.checks import check_facts, check_graphs, list_skipped, refuse_bad_rows
from graphgps_pearl.data.parallel import Prepared, Transform
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import ConfigError, DataError
from graphgps_pearl.memory import require_memory

log = logging.getLogger(__name__)

_STATE = ("graphs", "skipped", "target_mean", "target_std", "splits")
_CONTENT = ("graphs", "target_mean", "target_std", "splits")  # what a run depends on, wherever the files are
_CHUNK = 2048  # graphs collated at a time, so that a quarter of a million need not be held one by one
_SAMPLE = 32  # graphs from which the cost of all is foretold


def spec(cfg: CfgNode) -> DatasetSpec | None:
    """What is known of ``cfg.dataset`` without loading it, or None where a model needs more than that.

    ConfigError where the config contradicts the dataset.
    """
    known = declared(cfg)
    return None if known.dim_in is None or known.dim_out is None else known


def declared(cfg: CfgNode) -> DatasetSpec:
    """What ``cfg.dataset`` says of itself before it is read, sizes or not; ConfigError as for
    :func:`spec`."""
    return _spec(registry.find(cfg))


def _spec(source: Source) -> DatasetSpec:
    chosen = source.cfg.dataset
    if not source.reads_files and (chosen.path or chosen.source in ("path", "download")):
        wrong = f"dataset.path: {chosen.path}" if chosen.path else f"dataset.source: {chosen.source}"
        raise ConfigError(
            f"{wrong} would be ignored, {chosen.name} reads no files; leave it out, or use "
            "dataset.format csv for molecules of your own"
        )
    known = source.spec()
    # GraphGPS calls a task on the nodes of many graphs a graph task with another head, and like GraphGym
    # it reads two classes as one logit.
    inductive = chosen.task == "graph" and source.cfg.gnn.head == f"inductive_{known.task}"
    one_logit = (chosen.task_type, known.task_type) == ("classification", "classification_binary")
    for key, fitting, also in (("task", known.task, inductive), ("task_type", known.task_type, one_logit)):
        if chosen[key] != fitting and not also:
            raise ConfigError(
                f"dataset.{key}: {chosen[key]!r} does not fit {known.name}; set it to {fitting}"
            )
    if chosen.split_mode not in source.own_split_modes:
        if chosen.split_mode != "random":
            splits.parse_cv(chosen.split_mode)
        known = dataclasses.replace(known, splits=TRAIN_VAL_TEST, select_split="val")
    if chosen.select_split:
        if chosen.select_split not in known.splits:
            raise ConfigError(
                f"dataset.select_split: {chosen.select_split!r} is no split of {known.name}; "
                f"its splits are {', '.join(known.splits)}"
            )
        known = dataclasses.replace(known, select_split=chosen.select_split)
    return known


def require_files(cfg: CfgNode) -> None:
    """Find the files of ``cfg.dataset``, downloading what has to be; DataError where that cannot be."""
    registry.find(cfg).fingerprint()


def load(cfg: CfgNode, transforms: Sequence[Transform] = ()) -> DataBundle:
    """Load ``cfg.dataset``, prepared with ``transforms`` (whose ``repr`` must carry every setting: it is
    the key)."""
    source = registry.find(cfg)
    known = _spec(source)
    began = time.perf_counter()
    folder = source.dir / "prepared"
    parts = {"source": type(source).__qualname__, "version": source.version, "subset": cfg.dataset.subset}
    parts |= {"name": cfg.dataset.name, "fingerprint": source.fingerprint()}
    raw_file = _cache_file(folder, known.name, parts)
    state, made = _stage(source, raw_file, lambda: _read(source, raw_file))
    refuse_bad_rows(source, state["skipped"], raw_file)
    content = {key: state[key] for key in _CONTENT}
    identity = cache.digest(content | ({"folds": splits.FOLDS} if _in_folds(source) else {}))
    whole = not cfg.dataset.subset and not state["skipped"]
    if cfg.dataset.check_totals and whole and (facts := source.facts()) is not None:
        check_facts(facts, state, known.name)
    check_graphs(cfg, GraphTable.from_state(state["graphs"]), known)
    file = raw_file
    if transforms:
        parts["transforms"] = [repr(transform) for transform in transforms]
        parts["libraries"] = [torch.__version__, torch_geometric.__version__, __version__]
        file = _cache_file(folder, known.name, parts)
        prepared, made_now = _stage(
            source, file, lambda: _transform(state, transforms, known.name, cfg.num_workers)
        )
        state, made = prepared, made or made_now
    bundle = _bundle(source, known, state, _graph_class(transforms))
    if cfg.dataset.standardise:
        _standardise(bundle)
    bundle.identity = identity
    bundle.cache_file = file if source.cacheable else None
    bundle.prepare_seconds = time.perf_counter() - began if made else 0.0
    return bundle


def _cache_file(folder: Path, name: str, parts: dict[str, Any]) -> Path:
    # A name of the user's own may be anything; it must not leave the folder.
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", name)[:60]
    return folder / f"{readable}-{cache.key_of(parts)}.pt"


def _stage(source: Source, file: Path, make: Callable[[], dict[str, Any]]) -> tuple[dict[str, Any], bool]:
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


def _read(source: Source, file: Path) -> dict[str, Any]:
    """First stage: the items' graphs, and which rows gave none."""
    began = time.perf_counter()
    items = source.items()
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
        nodes = source.spec().transductive
        state["splits"] = {
            name: torch.tensor([i if nodes else position[i] for i in part if nodes or i in position]).long()
            for name, part in items.splits.items()
        }
    return state


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
    pending: list[Data] = []
    for graph in graphs:
        pending.append(graph)
        if len(pending) == _CHUNK:
            tables.append(GraphTable.from_graphs(pending))
            pending = []
    tables.append(GraphTable.from_graphs(pending))
    return GraphTable.join(tables)


def _transform(
    state: dict[str, Any], transforms: Sequence[Transform], name: str, num_workers: int
) -> dict[str, Any]:
    """Second stage: every graph through every transform."""
    prepared = Prepared(GraphTable.from_state(state["graphs"]), transforms, name)
    _announce(prepared, name)
    began = time.perf_counter()
    with tqdm(total=len(prepared), desc="transforms", unit="graph", disable=None, leave=False) as bar:
        tables = []
        for table in prepared.in_parts(num_workers):
            tables.append(table)
            bar.update(len(table))
    transformed = GraphTable.join(tables)
    if transformed.graph_class is not _graph_class(transforms):
        made = transformed.graph_class.__name__
        raise TypeError(f"a transform makes graphs of class {made}, which its graph_class does not say")
    _log_rate("transformed", len(transformed), time.perf_counter() - began, name)
    return {**state, "graphs": transformed.to_state()}


def _announce(prepared: Prepared, name: str) -> None:
    """Say what a long preparation will take, from some graphs spread over the dataset."""
    count = len(prepared)
    if count < 10 * _SAMPLE:
        return
    began = time.process_time()
    sample = GraphTable.from_graphs([prepared[i] for i in range(0, count, count // _SAMPLE)])
    seconds = (time.process_time() - began) / len(sample)
    size = sample.num_bytes() / len(sample)
    # Twice: the parts, and the table that they are joined to.
    remedy = "use fewer eigenvectors or another encoding, or dataset.subset"
    require_memory(2 * count * size, "cpu", f"preparing {count} graphs of {name}", remedy)
    log.info(
        "preparing %d graphs of %s: about %.0f MB (%.1f kB each) and %.0f s of processor time",
        *(count, name, count * size / 1e6, size / 1e3, count * seconds),
    )


def _log_rate(what: str, count: int, seconds: float, name: str) -> None:
    rate = f" ({1000 * seconds / count:.2f} s per 1000 graphs)" if count else ""
    log.info("%s %d graphs of %s in %.1f s%s", what, count, name, seconds, rate)


def _graph_class(transforms: Sequence[Transform]) -> type[Data]:
    """What the last transform with a ``graph_class`` makes of a graph: a Data with its own __inc__, say."""
    declared: list[type[Data]] = [t.graph_class for t in transforms if hasattr(t, "graph_class")]
    return declared[-1] if declared else Data


def _bundle(source: Source, known: DatasetSpec, state: dict[str, Any], graph_class: type[Data]) -> DataBundle:
    table = GraphTable.from_state(state["graphs"], graph_class)
    if not len(table):
        raise DataError(f"{known.name}: no usable graph")
    index = _split_index(source, known, state, table)
    for split, part in index.items():
        if len(part) == 0:
            raise DataError(f"{known.name}: split {split!r} is empty; change dataset.split or the data")
    views = {
        split: _only_labels(table, index[split]) if known.transductive else table.select(index[split])
        for split in known.splits
    }
    return DataBundle(
        spec=_complete(known, table, source),
        splits=dict(views),
        target_mean=state["target_mean"],
        target_std=state["target_std"],
        skipped=[SkippedRow(*row) for row in state["skipped"]],
    )


def _only_labels(table: GraphTable, nodes: Tensor) -> GraphTable:
    """The same graphs, where only the targets of these nodes are known."""

    def change(y: Tensor) -> Tensor:
        kept = torch.full_like(y, torch.nan if y.is_floating_point() else -1)
        kept[nodes] = y[nodes]
        return kept

    return table.with_targets(change)


def _standardise(bundle: DataBundle) -> None:
    """Targets of mean 0 and standard deviation 1 over the training split, column by column."""
    if bundle.target_mean is not None:
        raise ConfigError(
            f"dataset.standardise: the targets of {bundle.spec.name} are standardised already; leave it out"
        )
    tables = {split: graphs for split, graphs in bundle.splits.items() if isinstance(graphs, GraphTable)}
    targets = next(iter(tables.values())).targets().double()
    known = ~targets.isnan()
    count = known.sum(dim=0).clamp(min=1)
    mean = torch.where(known, targets, 0).sum(dim=0) / count
    std = (torch.where(known, targets - mean, 0).square().sum(dim=0) / count).sqrt()
    std = torch.where(std > 1e-6 * mean.abs(), std, 1)  # a column with one value is only moved
    bundle.target_mean, bundle.target_std = bundle.moments = (mean.float(), std.float())
    bundle.splits = {
        split: table.with_targets(lambda y: ((y.double() - mean) / std).float())
        for split, table in tables.items()
    }


def _in_folds(source: Source) -> bool:
    mode = source.cfg.dataset.split_mode
    return mode.startswith("cv-") or (mode == "standard" and source.standard_split_mode is not None)


def _split_index(
    source: Source, known: DatasetSpec, state: dict[str, Any], table: GraphTable
) -> dict[str, Tensor]:
    chosen = source.cfg.dataset
    mode = chosen.split_mode
    folds = _in_folds(source)
    if mode == "standard" and source.num_splits > 1:
        folds = True
        if chosen.split_index >= source.num_splits:
            raise ConfigError(
                f"dataset.split_index: {chosen.split_index} must be between 0 and {source.num_splits - 1}, "
                f"the splits of {known.name}"
            )
    if chosen.split_index and not folds:
        raise ConfigError(
            f"dataset.split_index: {chosen.split_index}, but dataset.split_mode {mode} has one split; use "
            "cv-kfold-K or cv-stratifiedkfold-K, or runs of several seeds"
        )
    if mode in source.own_split_modes:
        if state["splits"] is not None:
            return dict(state["splits"])
        if source.standard_split_mode is None:
            raise ConfigError(
                f"dataset.split_mode: {known.name} has no split of its own; "
                f"use random, cv-kfold-K or cv-stratifiedkfold-K"
            )
        mode = source.standard_split_mode
    targets = table.targets()
    labelled = _labelled(targets) if known.transductive else torch.arange(len(table))
    if known.transductive:
        targets = targets[labelled]
    labels, total = _classes(targets, len(labelled)), len(labelled)
    parts = splits.by_mode(mode, total, labels, chosen.split, source.cfg.seed, chosen.split_index)
    return {split: labelled[torch.from_numpy(part)] for split, part in parts.items()}


def _labelled(targets: Tensor) -> Tensor:
    """The numbers of the nodes that have a target."""
    if targets.is_floating_point():
        return (~targets.isnan()).view(len(targets), -1).any(dim=1).nonzero().flatten()
    return (targets >= 0).nonzero().flatten()


def _classes(targets: Tensor, count: int) -> list[int] | None:
    """The class of each of so many graphs or nodes, where there is exactly one whole-numbered label each."""
    if targets.numel() != count or not bool((targets == targets.round()).all()):
        return None
    return [int(label) for label in targets.flatten().tolist()]


def _complete(known: DatasetSpec, table: GraphTable, source: Source) -> DatasetSpec:
    """Fill in from the graphs what the source could not say beforehand."""
    first = table[0]
    edge_attr = first.edge_attr
    edge_dim = 0 if edge_attr is None else (1 if edge_attr.dim() == 1 else edge_attr.size(1))
    dim_out = known.dim_out
    if dim_out is None:
        targets = table.targets()
        dim_out = int(targets.max()) + 1 if targets.dtype == torch.long else int(targets[0].numel())
    return dataclasses.replace(
        known,
        dim_in=known.dim_in if known.dim_in is not None else int(first.num_features),
        edge_dim=known.edge_dim if known.edge_dim is not None else edge_dim,
        dim_out=dim_out,
        class_names=source.class_names() if known.task_type == "classification" else (),
    )
