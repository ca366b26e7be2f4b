"""``TypeDictNode``, ``TypeDictEdge``: an embedding table for nodes or edges that have one type each;
``PPANode`` for nodes that are all alike; ``ASTNode``, ``ASTEdge`` for syntax trees (ogbg-code2)."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg as active_cfg

from graphgps_pearl.encoders.linear import features_of
from graphgps_pearl.errors import DataError
from graphgps_pearl.vocabulary import AST_EDGE, AST_NODE


class _TypeDict(nn.Module):
    key: str  # the config key that says how many types there are

    def __init__(self, dim_emb: int, cfg: Any = None) -> None:
        super().__init__()
        self.encoder = nn.Embedding((active_cfg if cfg is None else cfg).dataset[self.key], dim_emb)

    def embed(self, types: Tensor) -> Tensor:
        """[n] or [n, c] integers (the first column counts) to [n, dim_emb]."""
        types = types if types.dim() == 1 else types[:, 0]
        if types.is_floating_point() and bool((broken := types != types.round()).any()):
            raise DataError(
                f"type {types[broken][0]:g} met, but types are whole numbers; for real-valued features use "
                f"{'LinearNode' if 'node' in self.key else 'LinearEdge'}"
            )
        try:
            return self.encoder(types.long())
        except IndexError:  # raised on the CPU; a GPU would have aborted inside the kernel
            least, largest, known = int(types.min()), int(types.max()), self.encoder.num_embeddings
            raise DataError(
                f"type {least if least < 0 else largest} met, but dataset.{self.key} is {known} (types 0 to "
                f"{known - 1})"
            ) from None


class TypeDictNodeEncoder(_TypeDict):
    """``batch.x`` [N, c] of integer types (first column) to [N, dim_emb]."""

    key = "node_encoder_num_types"

    def forward(self, batch: Batch) -> Batch:
        """Replace ``batch.x`` by its embedding."""
        batch.x = self.embed(features_of(batch, "x", self))
        return batch


class TypeDictEdgeEncoder(_TypeDict):
    """``batch.edge_attr`` [E] or [E, c] of integer types (first column) to [E, dim_emb]."""

    key = "edge_encoder_num_types"

    def forward(self, batch: Batch) -> Batch:
        """Replace ``batch.edge_attr`` by its embedding."""
        batch.edge_attr = self.embed(features_of(batch, "edge_attr", self))
        return batch


class PPANodeEncoder(nn.Module):
    """Every node of ogbg-ppa, which has no node features, to the same vector [N, dim_emb]."""

    def __init__(self, dim_emb: int, cfg: Any = None) -> None:
        super().__init__()
        self.encoder = nn.Embedding(1, dim_emb)

    def forward(self, batch: Batch) -> Batch:
        """Replace ``batch.x`` by that vector."""
        batch.x = self.encoder(batch.edge_index.new_zeros(batch.num_nodes))
        return batch


class _Columns(nn.Module):
    """The sum of a vector for each column of integers [n, c]."""

    sizes: ClassVar[tuple[int, ...]]

    def __init__(self, dim_emb: int) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(nn.Embedding(size, dim_emb) for size in self.sizes)

    def embed(self, columns: Tensor) -> Tensor:
        """[n, c] to [n, dim_emb]."""
        if columns.dim() != 2 or columns.size(1) != len(self.sizes):
            name = type(self).__name__.removesuffix("Encoder")
            raise DataError(
                f"{name} reads {len(self.sizes)} columns of whole numbers, as in ogbg-code2, and the data "
                f"has {list(columns.shape)}; use another encoder"
            )
        terms = (encoder(column) for encoder, column in zip(self.encoders, columns.long().t(), strict=True))
        return torch.stack(list(terms)).sum(dim=0)


class ASTNodeEncoder(_Columns):
    """Type, attribute and depth of the nodes of a syntax tree to [N, dim_emb]."""

    sizes = AST_NODE

    def forward(self, batch: Batch) -> Batch:
        """Replace ``batch.x`` by its embedding."""
        batch.x = self.embed(features_of(batch, "x", self))
        return batch


class ASTEdgeEncoder(_Columns):
    """Whether an edge joins tokens, and whether it goes back, to [E, dim_emb]."""

    sizes = AST_EDGE

    def forward(self, batch: Batch) -> Batch:
        """Replace ``batch.edge_attr`` by its embedding."""
        batch.edge_attr = self.embed(features_of(batch, "edge_attr", self))
        return batch
