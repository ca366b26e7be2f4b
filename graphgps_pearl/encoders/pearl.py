"""``RPEARL`` and ``BPEARL``: the encodings of :mod:`graphgps_pearl.pearl` for GraphGym.

Each key of ``posenc_RPEARL`` and ``posenc_BPEARL`` is an argument of the module of that name, apart from
those that say where the encoding enters; 0 stands for the arguments that may be None. Of a batch
``edge_index`` and ``batch`` are read, by R-PEARL also ``n_id``, which parts of one large graph have; weights
of edges are not. Nothing is precomputed.

B-PEARL's pairs may enter the network in two more ways: as a bias of the attention and on the edges. Both are
projections that start at zero, so that training begins as without them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg as active_cfg

from graphgps_pearl.contracts import EncoderOutput, Prepared
from graphgps_pearl.encoders.base import PosEncEncoder, attention_sizes, edge_width
from graphgps_pearl.errors import DataError
from graphgps_pearl.layers import PairBiasProjection, PairStream, pair_index
from graphgps_pearl.pearl import BPEARL, RPEARL


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
        return self.encoded(batch)

    def encoded(self, batch: Batch) -> Any:
        """What the module returns; a graph that it refuses is a :class:`DataError`."""
        graphs = Prepared.of(batch).get("graphs")
        return self._checked(self.encoding, *([graphs] if graphs is not None else _bare(batch)))

    def prepare_batch(self, batch: Batch, prepared: Prepared) -> None:
        """Let the module prepare the graphs of a batch, on the CPU."""
        graphs = prepared.get("graphs")
        prepare: Any = self.encoding.prepare
        prepared.set("graphs", self._checked(prepare, *([graphs] if graphs is not None else _bare(batch))))

    def _checked(self, function: Callable[..., Any], *graphs: Any) -> Any:
        try:
            return function(*graphs)
        except ValueError as error:
            raise DataError(f"posenc_{self.name}: {error}") from error


def _bare(batch: Batch) -> tuple[Any, ...]:
    return batch.edge_index, batch.batch, batch.num_nodes


class RPEARLNodeEncoder(_PEARLNodeEncoder):
    """R-PEARL for GraphGym; config group ``posenc_RPEARL``."""

    name = "RPEARL"
    module = RPEARL

    def encoded(self, batch: Batch) -> Any:
        """As above; parts of one large graph have their nodes' numbers in ``batch.n_id``."""
        if "n_id" not in batch:
            return super().encoded(batch)
        graphs = Prepared.of(batch).get("graphs")
        given = [graphs] if graphs is not None else _bare(batch)
        return self._checked(partial(self.encoding, node_id=batch.n_id), *given)


class BPEARLNodeEncoder(_PEARLNodeEncoder):
    """B-PEARL for GraphGym; config group ``posenc_BPEARL``."""

    name = "BPEARL"
    module = BPEARL

    def __init__(self, dim_emb: int, expand_x: bool = True, cfg: Any = None) -> None:
        cfg = active_cfg if cfg is None else cfg
        super().__init__(dim_emb, expand_x, cfg)
        settings = cfg.posenc_BPEARL
        self.pair_bias: PairBiasProjection | PairStream | None = None
        self.pair_edges: nn.Linear | None = None
        kind = settings.get("pair_bias", "none")
        if kind != "none":
            heads, layers, width = attention_sizes(cfg)
            self.pair_bias = (
                PairStream(settings.dim_pe, heads, layers, width, settings.pair_dim)
                if kind == "updated"
                else PairBiasProjection(settings.dim_pe, heads, layers if kind == "per_layer" else 1)
            )
        if settings.get("pair_edges", False):
            self.pair_edges = nn.Linear(settings.dim_pe, edge_width(cfg), bias=False)
            nn.init.zeros_(self.pair_edges.weight)

    @classmethod
    def build(cls, settings: Any, dim_emb: int) -> nn.Module:
        """Read the config group; the module returns the pairs if one of the keys uses them."""
        module = super().build(settings, dim_emb)
        assert isinstance(module, BPEARL)
        module.return_pairs = _uses_pairs(settings)
        return module

    def prepare_batch(self, batch: Batch, prepared: Prepared) -> None:
        """Prepare the graphs, and the index of the attention bias for the groups of the layout."""
        super().prepare_batch(batch, prepared)
        if self.pair_bias is not None and (layout := prepared.get("layout")) is not None:
            graphs, encoding = prepared.get("graphs"), self.encoding
            assert isinstance(encoding, BPEARL)
            rows, groups = encoding.rows(graphs), layout.grouping.groups
            index = pair_index(rows.pair_row, rows.num_rows, graphs.sizes, groups) if groups else None
            prepared.set("pair_index", index)

    def encode(self, batch: Batch) -> Tensor:
        """Encode the bare graphs."""
        out = self.encoded(batch)
        return out if isinstance(out, Tensor) else out[0]

    def output(self, batch: Batch) -> EncoderOutput:
        """The encoding, and its pairs projected for attention and edges."""
        out = self.encoded(batch)
        if isinstance(out, Tensor):
            return EncoderOutput(nodes=out)
        pe, pairs = out
        return EncoderOutput(
            nodes=pe,
            edges=None if self.pair_edges is None else self.pair_edges(pairs.of_edges(batch.edge_index)),
            attention_bias=()
            if self.pair_bias is None
            else self.pair_bias(pairs, Prepared.of(batch).get("pair_index")),
        )


def _uses_pairs(settings: Any) -> bool:
    return settings.get("pair_bias", "none") != "none" or settings.get("pair_edges", False)
