"""``RPEARL`` and ``BPEARL``: the encodings of :mod:`graphgps_pearl.pearl` for GraphGym.

Each key of ``posenc_RPEARL`` and ``posenc_BPEARL`` is an argument of the module of that name, apart from the
three that say where the encoding enters; 0 stands for the arguments that may be None. Only ``edge_index`` and
``batch`` are read, and nothing need be precomputed. B-PEARL's plan, which says what of it is equal, may be.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.encoders.base import PosEncEncoder
from graphgps_pearl.pearl import BPEARL, RPEARL, BPEARLPlan, stored_plan


class _PEARLNodeEncoder(PosEncEncoder):
    module: ClassVar[type[nn.Module]]

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> nn.Module:
        """Read the config group, key by argument."""
        names = inspect.signature(cls.module).parameters
        arguments = {name: settings[name] for name in names if name in settings}
        for name in ("mlp_hidden", "chunk_size"):
            if arguments.get(name) == 0:
                arguments[name] = None
        return cls.module(**arguments)

    def encode(self, batch: Batch) -> Tensor:
        """Encode the bare graphs."""
        return self.encoding(batch.edge_index, batch.batch, batch.num_nodes)


class RPEARLNodeEncoder(_PEARLNodeEncoder):
    """R-PEARL for GraphGym; config group ``posenc_RPEARL``."""

    name = "RPEARL"
    module = RPEARL


class BPEARLNodeEncoder(_PEARLNodeEncoder):
    """B-PEARL for GraphGym; config group ``posenc_BPEARL``."""

    name = "BPEARL"
    module = BPEARL

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """The plan, if it is to be cached with the data."""
        if settings.plan != "cached":
            return []
        return [BPEARLPlan(settings.num_taps, settings.num_layers, settings.gso)]

    def encode(self, batch: Batch) -> Tensor:
        """Encode the bare graphs, by their plan if they bring one."""
        return self.encoding(batch.edge_index, batch.batch, batch.num_nodes, plan=stored_plan(batch))
