"""PCQM-Contact of the Long Range Graph Benchmark: which atoms far apart in a molecule are close in space.

The public files are PyG's (``torch_geometric.datasets.LRGBDataset``): one file per split of tuples (x,
edge_attr, edge_index, edge_label_index, edge_label), read without running code. Spelled as in GraphGPS
(``dataset.format: OGB``, ``name: PCQM4Mv2Contact-shuffle``, the same split) or ``PyG-LRGB`` with
``PCQM-Contact``. Two pairs without a contact are drawn for every contact, the same ones each time the data
is read, unless the file has some.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from graphgps_pearl.data.base import TRAIN_VAL_TEST, BadRowError, DatasetSpec, Facts, Items, Source, joined
from graphgps_pearl.data.download import checksums, fetch_zip, files_in, locate
from graphgps_pearl.data.pickles import read_tensors
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.negatives import with_negatives

_URL = "https://www.dropbox.com/s/qdag867u6h6i60y/pcqmcontact.zip?dl=1"
_GRAPHS, _MOST_BYTES = 529_434, 16 << 30


@register_dataset("OGB", "PCQM4Mv2Contact-shuffle")
class PCQMContact(Source):
    """x [N, 9], edge_attr [E, 3], edge_index_labeled [2, L], edge_label [L]."""

    def spec(self) -> DatasetSpec:
        """One logit for a pair of atoms."""
        self.features("ogb")
        return DatasetSpec("PCQM-Contact", "classification_binary", 9, 3, 1, ("contact",), task="edge")

    def facts(self) -> Facts:
        """The number of molecules."""
        return Facts(num_graphs=_GRAPHS)

    def fingerprint(self) -> dict[str, Any]:
        """The files' checksums."""
        return checksums(self, self._files())

    def items(self) -> Items:
        """Molecules of the three splits, one after the other."""
        files = self._files()
        rows, splits = joined({split: read_tensors(file) for split, file in files.items()})

        def where(i: int) -> str:
            return f"molecule {rows[i][1]} of {rows[i][0]}.pt"

        folder = str(files["train"].parent)
        return Items(folder, len(rows), lambda i: _graph(rows[i][2], i), where, splits)

    def _files(self) -> dict[str, Path]:
        def look(place: Path) -> dict[str, Path] | None:
            folders = (place, place / "raw", place / "pcqmcontact", place / "pcqm-contact" / "raw")
            return files_in(folders, {split: f"{split}.pt" for split in TRAIN_VAL_TEST})

        return locate(
            self, self.dir / "pcqm-contact", look, self._fetch, f"train.pt, val.pt, test.pt of {_URL}"
        )

    def _fetch(self, folder: Path) -> None:
        members = {f"pcqmcontact/{split}.pt": folder / "raw" / f"{split}.pt" for split in TRAIN_VAL_TEST}
        # Its publisher names no checksum; the number of graphs is checked.
        fetch_zip(_URL, folder / "pcqmcontact.zip", None, members, _MOST_BYTES)


@register_dataset("PyG-LRGB", "PCQM-Contact", "pcqm-contact")
class PyGPCQMContact(PCQMContact):
    """PCQM-Contact by PyG's name."""


def _graph(row: Any, number: int) -> Data:
    try:
        x, edge_attr, edge_index, pairs, label = row
        pairs, label, nodes = pairs.long().view(2, -1), label.float().view(-1), len(x)
        graph = Data(
            x=x.long().view(-1, 9), edge_attr=edge_attr.long().view(-1, 3), edge_index=edge_index.long()
        )
    except (TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise BadRowError("not a tuple (x, edge_attr, edge_index, edge_label_index, edge_label)") from error
    if pairs.size(1) != len(label) or not bool((label > 0.5).any()):
        raise BadRowError(f"{pairs.size(1)} pairs with {len(label)} labels, of which one has to be a contact")
    if int(pairs.min()) < 0 or int(pairs.max()) >= nodes:
        raise BadRowError(f"names atoms that it does not have; it has {nodes}")
    if bool((label > 0.5).all()):
        generator = torch.Generator().manual_seed(number)
        alone = torch.zeros(nodes, dtype=torch.long)
        pairs, label = with_negatives(pairs, alone, torch.tensor([nodes]), generator)
    graph.edge_index_labeled, graph.edge_label = pairs, label
    return graph
