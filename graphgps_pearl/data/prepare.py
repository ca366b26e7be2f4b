"""From ``cfg.dataset`` to splits of graphs: read, featurise, transform, cache.

Two stages, each cached under its own key: the graphs as the source gives them, and these graphs after the
transforms. A changed encoding thus repeats its own work only.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch_geometric
from torch import Tensor
from torch_geometric.data import Data
from yacs.config import CfgNode

from graphgps_pearl import __version__
from graphgps_pearl.data import cache, registry, splits, stages
from graphgps_pearl.data.base import (
    TRAIN_VAL_TEST,
    DataBundle,
    DatasetSpec,
    SkippedRow,
    Source,
)
from graphgps_pearl.data.checks import check_facts, check_graphs, refuse_bad_rows
from graphgps_pearl.data.stages import Transform, View
from graphgps_pearl.data.subgraphs import Neighbourhoods
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import ConfigError, DataError

log = logging.getLogger(__name__)

_CONTENT = ("graphs", "target_mean", "target_std", "splits")  # what a run depends on, wherever the files are


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
    for key in ("subgraph_hops", "subgraph_parts", "subgraph_neighbors"):
        if chosen[key] and not known.transductive:
            raise ConfigError(
                f"dataset.{key}: {chosen[key]} is for node tasks on one graph, and {known.name} has many; "
                "leave it out"
            )
    if chosen.subgraph_neighbors and not chosen.subgraph_hops:
        raise ConfigError(
            f"dataset.subgraph_neighbors: {chosen.subgraph_neighbors} has no effect, since "
            "dataset.subgraph_hops is 0; set dataset.subgraph_hops, or leave it out"
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


def load(cfg: CfgNode, transforms: Sequence[Transform] = (), view: View | None = None) -> DataBundle:
    """Load ``cfg.dataset``, prepared with ``transforms`` (whose ``repr`` must carry every setting: it is
    the key); ``view`` turns the items into others before, such as molecules into fingerprints."""
    source = registry.find(cfg)
    known = _spec(source)
    began = time.perf_counter()
    folder = source.dir / "prepared"
    parts = {"source": type(source).__qualname__, "version": source.version, "subset": cfg.dataset.subset}
    parts |= {"name": cfg.dataset.name, "fingerprint": source.fingerprint()}
    if view is not None:
        parts["view"] = repr(view)
    raw_file = stages.cache_file(folder, known.name, parts)
    state, made = stages.stage(source, raw_file, lambda: stages.read(source, raw_file, view))
    refuse_bad_rows(source, state["skipped"], raw_file)
    content = {key: state[key] for key in _CONTENT}
    identity = cache.digest(content | ({"folds": splits.FOLDS} if _in_folds(source) else {}))
    whole = not cfg.dataset.subset and not state["skipped"]
    if view is None:
        if cfg.dataset.check_totals and whole and (facts := source.facts()) is not None:
            check_facts(facts, state, known.name)
        check_graphs(cfg, GraphTable.from_state(state["graphs"]), known)
    file = raw_file
    if transforms:
        parts["transforms"] = [repr(transform) for transform in transforms]
        parts["libraries"] = [torch.__version__, torch_geometric.__version__, __version__]
        file = stages.cache_file(folder, known.name, parts)
        prepared, made_now = stages.stage(
            source, file, lambda: stages.transform(state, transforms, known.name, cfg.num_workers)
        )
        state, made = prepared, made or made_now
    bundle = _bundle(source, known, state, stages.graph_class(transforms))
    if cfg.dataset.standardise:
        _standardise(bundle)
    bundle.identity = identity
    bundle.cache_file = file if source.cacheable else None
    bundle.prepare_seconds = time.perf_counter() - began if made else 0.0
    return bundle


def _bundle(source: Source, known: DatasetSpec, state: dict[str, Any], graph_class: type[Data]) -> DataBundle:
    table = GraphTable.from_state(state["graphs"], graph_class)
    if not len(table):
        raise DataError(f"{known.name}: no usable graph")
    index = _split_index(source, known, state, table)
    for split, part in index.items():
        if len(part) == 0:
            raise DataError(f"{known.name}: split {split!r} is empty; change dataset.split or the data")
    return DataBundle(
        spec=_complete(known, table, source),
        splits={split: _split(source.cfg, known, table, index[split]) for split in known.splits},
        target_mean=state["target_mean"],
        target_std=state["target_std"],
        skipped=[SkippedRow(*row) for row in state["skipped"]],
    )


def _split(cfg: CfgNode, known: DatasetSpec, table: GraphTable, index: Tensor) -> Sequence[Data]:
    """The graphs of a split; of one graph, the whole with the targets of some nodes, or their
    neighbourhoods."""
    if not known.transductive:
        return table.select(index)
    hops, parts = cfg.dataset.subgraph_hops, cfg.dataset.subgraph_parts
    more = (hops, cfg.dataset.subgraph_neighbors, cfg.seed)
    if parts:
        return Neighbourhoods.parts(table[0], parts, index, *more)
    return Neighbourhoods(table[0], index, *more) if hops else _only_labels(table, index)


def _only_labels(table: GraphTable, nodes: Tensor) -> GraphTable:
    """The same graphs, where only the targets of these nodes are known."""

    def change(y: Tensor) -> Tensor:
        kept = torch.full_like(y, torch.nan if y.is_floating_point() else -1)
        kept[nodes] = y[nodes]
        return kept

    return table.with_targets(change)


def _standardise(bundle: DataBundle) -> None:
    """Targets of mean 0 and standard deviation 1 over the training split, column by column."""
    if not all(isinstance(part, GraphTable) for part in bundle.splits.values()):
        raise ConfigError(
            "dataset.standardise: is not offered with dataset.subgraph_hops and _parts; leave it out"
        )
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
