"""Datasets that third-party code registered with GraphGym's ``register_loader``.

GraphGym asks one loader after the other with (format, name, dir); the first that answers wins. Its dataset
has ``split_idxs`` or ``train_graph_index``-like attributes, or leaves splitting to ``dataset.split_mode``.
With ``dataset.task: node`` and ``dataset.transductive: True`` (GraphGym's default) it is one graph, whose
``train_mask``, ``val_mask`` and ``test_mask`` [N], or [N, S] for S splits, say which nodes a split has.
Where its bytes come from is not known to us, so nothing of it is cached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.data.base import TRAIN_VAL_TEST, BadRowError, DatasetSpec, Items, Source
from graphgps_pearl.errors import ConfigError, DataError


def has_loaders() -> bool:
    """Whether any third-party loader is registered."""
    from torch_geometric.graphgym import register

    return bool(register.loader_dict)


class GraphGymSource(Source):
    """Whatever ``torch_geometric.graphgym.register.loader_dict`` makes of ``dataset.format`` and
    ``dataset.name``."""

    cacheable = False

    def spec(self) -> DatasetSpec:
        """Nothing but the task is known before the loader has run."""
        chosen = self.cfg.dataset
        node = chosen.task == "node" or self.cfg.gnn.head == "inductive_node"
        task, one_graph = "node" if node else "graph", chosen.task == "node" and chosen.transductive
        return DatasetSpec(chosen.name, chosen.task_type, task=task, transductive=one_graph)

    @property
    def num_splits(self) -> int:  # type: ignore[override]  # known from the masks alone
        """How many splits the masks of one graph hold."""
        if not self.spec().transductive:
            return 1
        mask = self._dataset[0].get("train_mask")
        return mask.size(1) if mask is not None and mask.dim() == 2 else 1

    def fingerprint(self) -> dict[str, Any]:
        """Unused: such data is not cached."""
        return {}

    @cached_property
    def _dataset(self) -> Any:
        from torch_geometric.graphgym import register

        from graphgps_pearl import config

        config.activate(self.cfg)
        chosen = self.cfg.dataset
        for loader in register.loader_dict.values():
            dataset = loader(chosen.format, chosen.name, chosen.dir)
            if dataset is not None:
                return dataset
        raise ConfigError(
            f"dataset.format: no dataset of ours and none of the {len(register.loader_dict)} "
            f"registered GraphGym loaders answers to format {chosen.format!r}, name {chosen.name!r}"
        )

    def items(self) -> Items:
        """The loader's graphs, with its splits where it brings them."""
        dataset, known = self._dataset, self.spec()
        if known.transductive and len(dataset) != 1:
            raise ConfigError(
                f"dataset.transductive: True is for one graph, and {known.name} has {len(dataset)}; set it "
                f"False"
            )
        splits = self._node_splits() if known.transductive else _splits_of(dataset)

        def graph(i: int) -> Data:
            kept = dataset[i].to_dict()
            data = Data(
                **{key: value for key, value in kept.items() if not key.endswith(("_graph_index", "_mask"))}
            )
            rows = 1 if known.task == "graph" else int(data.num_nodes or 0)
            data.y = _target(data.y, known.task_type, rows)
            return data

        return Items(self.cfg.dataset.name, len(dataset), graph, lambda i: f"graph {i}", splits)

    def _node_splits(self) -> dict[str, Sequence[int]] | None:
        """The nodes of each split of one graph, by its masks."""
        masks = [self._dataset[0].get(f"{split}_mask") for split in TRAIN_VAL_TEST]
        if any(mask is None for mask in masks):
            return None
        chosen = [
            m if m.dim() == 1 else m[:, min(self.cfg.dataset.split_index, m.size(1) - 1)] for m in masks
        ]
        return {
            name: mask.nonzero().flatten().tolist() for name, mask in zip(TRAIN_VAL_TEST, chosen, strict=True)
        }


def _target(y: Any, task_type: str, rows: int) -> Tensor:
    """Classes as whole numbers [rows], other targets as real ones [rows, dim_out], however y has them."""
    if y is None:
        raise BadRowError("has no y")
    y = torch.as_tensor(y)
    if task_type == "subtoken_prediction":
        return y.view(rows, -1)
    if task_type != "classification":
        return (y if y.is_floating_point() else y.float()).view(rows, -1)
    if y.numel() != rows:
        raise BadRowError(f"y has {y.numel()} values, not one class for each of {rows}")
    classes = y.view(-1).nan_to_num(-1) if y.is_floating_point() else y.view(-1)  # NaN: not known
    if y.is_floating_point() and bool((fractions := classes != classes.round()).any()):
        raise BadRowError(f"its class is {float(classes[fractions][0]):g}, which is no whole number")
    return classes.long()


def _splits_of(dataset: Any) -> dict[str, Sequence[int]] | None:
    index = getattr(dataset, "split_idxs", None)
    if index is None:
        held = getattr(dataset, "_data", None)
        names = [f"{split}_graph_index" for split in TRAIN_VAL_TEST]
        if held is None or not all(name in held for name in names):
            return None
        index = [held[name] for name in names]
    if isinstance(index, Mapping) or len(index) != len(TRAIN_VAL_TEST):
        raise DataError(
            "split_idxs: expected three lists of graph numbers, for training, validation and test; leave it "
            "out to split by dataset.split_mode"
        )
    return {name: torch.as_tensor(part).tolist() for name, part in zip(TRAIN_VAL_TEST, index, strict=True)}
