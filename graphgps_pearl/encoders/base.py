"""The GraphGym side of every positional encoding.

An encoder of the registry is ``Encoder(dim_emb, expand_x=True)`` with ``forward(batch) -> batch``. It reads
its config group ``posenc_<name>`` when it is built and hands tensors to a pure module afterwards. Its
``dim_pe`` columns enter the network in one of two ways (``posenc_<name>.inject``):

* ``input``: ``batch.x = cat(h, pe)`` with ``h = linear_x(x)`` of width ``dim_emb - dim_pe`` if ``expand_x``,
  else x;
* ``every_layer``: ``batch.x = h`` with all ``dim_emb`` columns, and the network adds a projection of the
  encoding before each of its layers.

What the network reads besides ``batch.x`` is handed over as an
:class:`~graphgps_pearl.contracts.EncoderOutput`, in :meth:`PosEncEncoder.forward` and nowhere else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg as active_cfg
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.encoders.linear import apply_linear, features_of
from graphgps_pearl.errors import ConfigError, DataError


class WidthError(ConfigError, ValueError):
    """The encodings need more columns than the network has (in GraphGym's contract, a ``ValueError``)."""


class PosEncEncoder(nn.Module, ABC):
    """Base of the encodings: subclasses name themselves, build the pure module and feed it.

    Args:
        dim_emb: Width of ``batch.x`` afterwards.
        expand_x: Whether to map the incoming ``batch.x`` linearly to the columns that the encoding leaves
            free.
        cfg: The config, with the columns of the raw node features in ``share.dim_in``; None = GraphGym's.
    """

    name: ClassVar[str]

    def __init__(self, dim_emb: int, expand_x: bool = True, cfg: Any = None) -> None:
        super().__init__()
        cfg = active_cfg if cfg is None else cfg
        settings = cfg[f"posenc_{self.name}"]
        columns = self.columns(settings)
        free = dim_emb - columns
        if free < 0:
            raise WidthError(
                f"posenc_{self.name}.dim_pe is {settings.dim_pe}, more than the {dim_emb} columns there are"
            )
        self.concatenated = columns > 0
        self.injected = self.injected_columns(settings) > 0
        self.stored = not self.concatenated or settings.pass_as_var
        self.expand_x = expand_x
        self.linear_x = nn.Linear(cfg.share.dim_in, free) if expand_x and free else None
        try:
            self.encoding = self.build(settings, dim_emb)
        except ValueError as error:
            raise ConfigError(f"posenc_{self.name}: {error}") from None

    @classmethod
    @abstractmethod
    def build(cls, settings: Any, dim_emb: int) -> nn.Module:
        """The pure module that the config group describes."""

    @abstractmethod
    def encode(self, batch: Batch) -> Tensor:
        """The encoding [N, dim_pe] of a batch."""

    def output(self, batch: Batch) -> EncoderOutput:
        """The encoding as ``nodes``, with what edges or attention get of it."""
        return EncoderOutput(nodes=self.encode(batch))

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """What has to be precomputed for every graph."""
        return []

    @classmethod
    def columns(cls, settings: Any) -> int:
        """How many columns of ``batch.x`` the encoding takes."""
        return 0 if cls.injected_columns(settings) else settings.dim_pe

    @classmethod
    def injected_columns(cls, settings: Any) -> int:
        """How many columns enter every layer."""
        return settings.dim_pe if getattr(settings, "inject", "input") == "every_layer" else 0

    def forward(self, batch: Batch) -> Batch:
        """Set ``batch.x``, attach the rest of the output and, if asked for, set ``batch.pe_<name>``."""
        out = self.output(batch)
        pe = out.nodes
        assert pe is not None
        if self.expand_x:
            if self.linear_x is None:
                batch.x = pe.new_empty(pe.size(0), 0)
            else:
                batch.x = apply_linear(self.linear_x, features_of(batch, "x", self))
        replace(out, nodes=pe if self.concatenated else None, per_layer=pe if self.injected else None).attach(
            batch
        )
        if self.stored:
            batch[f"pe_{self.name}"] = pe
        return batch

    def precomputed(self, batch: Batch, attribute: str) -> Tensor:
        """A tensor that one of :meth:`transforms` has stored."""
        return precomputed(batch, attribute, self.name).to(next(self.encoding.parameters()).dtype)


def precomputed(batch: Batch, attribute: str, encoding: str) -> Tensor:
    """A tensor that a transform has stored for the encoding of that name."""
    if attribute not in batch:
        raise DataError(
            f"{encoding} needs the precomputed '{attribute}': "
            "prepare the data with graphgps_pearl.encoders.required_transforms(cfg)"
        )
    return batch[attribute]


def edge_width(cfg: Any) -> int:
    """Columns of the edge features that the layers read."""
    width: int = cfg.gnn.dim_inner
    return min(128, width) if "PNA" in cfg.gt.layer_type else width


def attention_sizes(cfg: Any) -> tuple[int, int, int]:
    """Heads, layers and width of the network whose attention reads an encoding."""
    if cfg.model.type == "Graphormer":
        return cfg.graphormer.num_heads, cfg.graphormer.num_layers, cfg.graphormer.embed_dim
    return cfg.gt.n_heads, cfg.gt.layers, cfg.gt.dim_hidden


def graph_of_nodes(batch: Batch) -> tuple[Tensor, int]:
    """Graph number of every node [N] and the number of graphs, for a batch or for a single graph."""
    if getattr(batch, "batch", None) is None:
        return batch.edge_index.new_zeros(batch.num_nodes), 1
    return batch.batch, batch.num_graphs
