"""What is said of data that cannot be used: rows that gave no graph, totals that are not the public ones."""

from __future__ import annotations

import csv
import dataclasses
import io
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from graphgps_pearl.data import cache
from graphgps_pearl.data.base import Facts, SkippedRow, Source
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import DataError

log = logging.getLogger(__name__)


def list_skipped(skipped: Sequence[SkippedRow], file: Path) -> None:
    """Write the rows that gave no graph beside the cache ``file``."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("file", "row", "reason"))
    writer.writerows(dataclasses.astuple(row) for row in skipped)
    with cache.atomic_file(_skipped_file(file)) as target:
        target.write(text.getvalue().encode())


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
        f"mend them, or set dataset.skip_bad_rows True to go on without them"
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
