"""ogbg-code2: 452,741 Python methods as syntax trees; the words of a method's name are to be predicted.

As in OGB's example and GraphGPS: a graph is cut to its first 1,000 nodes. To the edges of the tree (parent to
child) come those from each token to the next, and all in the other direction. The target is the first five
words of the name among the 5,000 most frequent ones of the training methods; 5,000 stands for any other
word and 5,001 for the end. ``y_words`` has all words of the name, each once, for the metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.data.base import BROKEN, Items
from graphgps_pearl.data.datasets.ogb_graphs import OGBGraphs, Public, read_rows, read_starts, read_table
from graphgps_pearl.data.registry import register_dataset
from graphgps_pearl.errors import DataError
from graphgps_pearl.escaping import first_line
from graphgps_pearl.unpacking import open_gzip
from graphgps_pearl.vocabulary import NAME_LENGTH, NAME_WORDS

_MOST_NODES, _MOST_DEPTH = 1000, 20
_SIZES = {"train": 407_976, "val": 22_817, "test": 21_948}
_UNKNOWN, _END = NAME_WORDS - 2, NAME_WORDS - 1


@register_dataset("OGB", "ogbg-code2", "ogbg_code2")
class OGBCode2(OGBGraphs):
    """x [N, 3] (type, attribute, depth), edge_attr [E, 2] (token or tree, backward or not), y [1, 5]."""

    @property
    def public(self) -> Public:
        """Its zip and its split."""
        words = NAME_LENGTH * NAME_WORDS
        return Public("subtoken_prediction", 3, 2, words, _SIZES, "code2", "project")

    def _names(self) -> list[str]:
        raw = ("edge", "node-feat", "node_is_attributed", "node_depth")
        names = [f"raw/{name}.csv.gz" for name in (*raw, "num-node-list", "num-edge-list", "graph-label")]
        return names + [f"split/{self.public.split}/{name}.csv.gz" for name in ("train", "valid", "test")]

    def items(self) -> Items:
        """Methods in the files' order."""
        folder = self._folder()
        raw = folder / "raw"
        nodes, edges = (read_starts(raw / f"num-{kind}-list.csv.gz") for kind in ("node", "edge"))
        splits = read_rows(folder, self.public.split)
        names = _names_of_methods(raw / "graph-label.csv.gz")
        tables = {
            name: read_table(raw / f"{name}.csv.gz", np.int32)
            for name in ("edge", "node-feat", "node_is_attributed", "node_depth")
        }
        shapes = {"edge": (edges[-1], 2), "node-feat": (nodes[-1], 2)}
        shapes |= dict.fromkeys(("node_is_attributed", "node_depth"), (nodes[-1], 1))
        for name, shape in shapes.items():
            if tables[name].shape != shape:
                raise DataError(f"{raw / name}.csv.gz: {tables[name].shape}, not {shape}; get it again")
        if len(names) != len(nodes) - 1:
            raise DataError(
                f"{raw}/graph-label.csv.gz: {len(names)} rows, not {len(nodes) - 1}; get it again"
            )
        number = word_numbers([names[i] for i in splits["train"]], names)
        width = max(len(set(name)) for name in names)

        def graph(i: int) -> Data:
            held = slice(nodes[i], min(nodes[i + 1], nodes[i] + _MOST_NODES))
            pairs = tables["edge"][edges[i] : edges[i + 1]]
            depth = tables["node_depth"][held].clip(max=_MOST_DEPTH)
            x = torch.from_numpy(np.concatenate((tables["node-feat"][held], depth), axis=1)).long()
            attributed = torch.from_numpy(tables["node_is_attributed"][held, 0] == 1)
            tree = torch.from_numpy(pairs[(pairs < _MOST_NODES).all(axis=1)]).long().t()
            edge_index, edge_attr = with_tokens(tree, attributed.nonzero().flatten())
            y, y_words = targets([number[word] for word in names[i]], width)
            return Data(x=x, edge_index=edge_index, edge_attr=edge_attr, y=y, y_words=y_words)

        return Items(str(raw), len(names), graph, lambda i: f"method {i}", splits)


def word_numbers(train: Sequence[Sequence[str]], names: Sequence[Sequence[str]]) -> dict[str, int]:
    """The number of every word: below 5,000 the most frequent ones of the training names, equally frequent
    ones in the order in which they appear; from 5,002 on those outside of this vocabulary."""
    counts = Counter(word for name in train for word in name)
    number = {word: i for i, (word, _) in enumerate(counts.most_common(_UNKNOWN))}
    for name in names:
        for word in name:
            number.setdefault(word, NAME_WORDS + len(number))
    return number


def targets(words: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """What is predicted [1, 5], and all different words [1, width], -1 behind the last."""
    first = [word if word < _UNKNOWN else _UNKNOWN for word in words[:NAME_LENGTH]]
    different = list(dict.fromkeys(words))
    padded = different + [-1] * (width - len(different))
    return torch.tensor([first + [_END] * (NAME_LENGTH - len(first))]), torch.tensor([padded])


def with_tokens(tree: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Edges of the tree [2, T] and from token to token (nodes in order), then each in the other direction:
    [2, E], and for each whether it joins tokens, and whether it goes back [E, 2]."""
    chain = torch.stack((tokens[:-1], tokens[1:]))
    parts = ((tree, 0, 0), (tree.flip(0), 0, 1), (chain, 1, 0), (chain.flip(0), 1, 1))
    attr = [torch.tensor([[kind, back]]).expand(part.size(1), 2) for part, kind, back in parts]
    return torch.cat([part for part, _, _ in parts], dim=1), torch.cat(attr)


def _names_of_methods(file: Path) -> list[list[str]]:
    """The words of every name, as OGB reads them: pandas takes "null" and its like for a missing value."""
    import pandas  # comes with ogb; only these files need it

    try:
        with open_gzip(file) as content:
            rows: NDArray[Any] = pandas.read_csv(content, header=None).to_numpy()
    except (OSError, *BROKEN) as error:
        raise DataError(f"{file}: not a table of names ({first_line(error)}); get it again") from error
    return [str(row[0]).split(" ") for row in rows]
