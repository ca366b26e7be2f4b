"""What is said of data that cannot be used: rows that gave no graph, totals that are not the public ones."""

from __future__ import annotations

import csv
import dataclasses
import io
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from yacs.config import CfgNode

from graphgps_pearl.data import cache
from graphgps_pearl.data.base import DatasetSpec, Facts, SkippedRow, Source
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import csv_cell
from graphgps_pearl.ogb_features import ogb_features
from graphgps_pearl.vocabulary import AST_EDGE, AST_NODE

log = logging.getLogger(__name__)


def list_skipped(skipped: Sequence[SkippedRow], file: Path) -> None:
    """Write the rows that gave no graph next to the cache ``file``."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("file", "row", "reason"))
    writer.writerows(map(csv_cell, dataclasses.astuple(row)) for row in skipped)
    cache.write(_skipped_file(file), text.getvalue())


def _skipped_file(file: Path) -> Path:
    return file.with_name(file.stem + ".skipped.csv")


def refuse_bad_rows(source: Source, skipped: Sequence[tuple[str, str, str]], file: Path) -> None:
    """DataError for rows that gave no graph, unless the config or the source says to go on without them."""
    if not skipped:
        return
    first, name = SkippedRow(*skipped[0]), source.spec().name
    count = f"{len(skipped)} row{'s' if len(skipped) > 1 else ''} of {name} cannot be used"
    if source.cfg.dataset.skip_bad_rows or source.bad_rows_are_known:
        log.info("%s; left out and listed in %s", count, _skipped_file(file))
        return
    raise DataError(
        f"{count}, the first is {first}; all are listed in {_skipped_file(file)}; "
        f"correct them, or set dataset.skip_bad_rows True to go on without them"
    )


def check_facts(facts: Facts, state: dict[str, Any], name: str) -> None:
    """DataError where the totals are not those of the public dataset."""
    table = GraphTable.from_state(state["graphs"])
    found = {f"graphs in {split}": len(index) for split, index in (state["splits"] or {}).items()}
    wanted = {f"graphs in {split}": size for split, size in (facts.split_sizes or {}).items()}
    if facts.num_graphs is not None:
        found["graphs"], wanted["graphs"] = len(table), facts.num_graphs
    if facts.num_nodes is not None:
        found["nodes"], wanted["nodes"] = int(table.num_nodes().sum()), facts.num_nodes
    if facts.num_edges is not None:
        found["directed edges"], wanted["directed edges"] = int(table.num_edges().sum()), facts.num_edges
    for what, number in wanted.items():
        if found.get(what, 0) != number:
            raise DataError(
                f"{name}: {found.get(what, 0):,} {what}, the public dataset has {number:,}; the files are "
                f"others or damaged (set dataset.check_totals False if they are a subset on purpose)"
            )
    if facts.content is not None and cache.digest(table.content()) != facts.content:
        raise DataError(
            f"{name}: the graphs or labels are not those of the public dataset, though their number is; the "
            f"files are others or damaged: get them again (set dataset.check_totals False to use them anyway)"
        )


def check_graphs(cfg: CfgNode, table: GraphTable, known: DatasetSpec) -> None:
    """DataError, with the graph's number, for what would train wrongly or abort in a kernel: edges to nodes
    that do not exist, features outside the encoder's table, numbers that are not finite, classes beyond the
    last."""
    if not len(table):
        return
    if table.column("x") is None and table.column("num_nodes") is None:
        raise DataError(f"{known.name}: its graphs have neither x nor num_nodes; set num_nodes")
    edges, sizes = table.column("edge_index"), table.num_nodes()
    if edges is not None:
        nodes = sizes.repeat_interleave(table.num_edges())
        _refuse(table, "edge_index", ((edges < 0) | (edges >= nodes)).any(dim=0), known.name, _edge)
    for key, kind in (("x", "node"), ("edge_attr", "edge")):
        values = table.column(key)
        if values is None:
            continue
        if values.is_floating_point():
            _refuse(table, key, _any_column(~values.isfinite()), known.name, _not_finite)
        elif cfg.dataset[f"{kind}_encoder"] and not table.is_real(key):
            _check_types(table, key, values, _table_sizes(cfg.dataset, kind), known.name)
    targets = table.column("y")
    if targets is None:
        return
    if targets.is_floating_point():
        _refuse(table, "y", _any_column(targets.isinf()), known.name, _not_finite)
    elif not table.is_real("y"):
        most = (1 << 31) if known.dim_out is None else known.dim_out
        least = 0 if known.task == "graph" else -1  # a node may have no label
        wrong = _any_column((targets.long() < least) | (targets.long() >= most))
        _refuse(table, "y", wrong, known.name, lambda y: f"its class is {y}, not 0 to {most - 1}")


def _any_column(bad: Tensor) -> Tensor:
    return bad if bad.dim() == 1 else bad.flatten(1).any(dim=1)


def _table_sizes(chosen: CfgNode, kind: str) -> list[int]:
    """How many values each column of the features may have, by the encoder that reads them."""
    name = chosen[f"{kind}_encoder_name"].split("+")[0]
    if name in ("TypeDictNode", "TypeDictEdge"):
        return [int(chosen[f"{kind}_encoder_num_types"])]
    if name in ("ASTNode", "ASTEdge"):
        return list(AST_NODE if name == "ASTNode" else AST_EDGE)
    if name == "Atom":
        return list(ogb_features().get_atom_feature_dims())
    return list(ogb_features().get_bond_feature_dims()) if name == "Bond" else []


def _check_types(table: GraphTable, key: str, values: Tensor, sizes: list[int], name: str) -> None:
    columns = values.unsqueeze(1) if values.dim() == 1 else values
    for number, size in enumerate(sizes[: columns.size(1)]):
        column = columns[:, number].long()  # stored narrow: a larger bound would wrap
        _refuse(table, key, (column < 0) | (column >= size), name, partial(_outside, key, number, size))


def _outside(key: str, number: int, size: int, row: Tensor) -> str:
    return f"column {number} of {key} is {row.flatten()[number]}, its encoder knows 0 to {size - 1}"


def _not_finite(values: Tensor) -> str:
    return f"has {values.flatten().tolist()}, which is not finite in float32"


def _edge(ends: Tensor) -> str:
    return f"an edge joins nodes {ends[0]} and {ends[1]}, which it does not have"


def _refuse(table: GraphTable, key: str, bad: Tensor, name: str, say: Callable[[Tensor], str]) -> None:
    if bool(bad.any()):
        position = int(bad.nonzero()[0])
        graph = table.owner(key, position)
        column = table.column(key)
        assert column is not None
        value = column.select(1 if key == "edge_index" else 0, position)
        nodes = int(table.num_nodes()[graph])
        raise DataError(f"graph {graph} of {name} ({nodes} nodes): {say(value)}; correct the data")
