"""A linear map of real-valued features: ``LinearNode``, ``LinearEdge``; by GraphGPS's names for superpixels
and ogbg-ppa ``VOCNode``, ``VOCEdge``, ``PPAEdge``."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg as active_cfg

from graphgps_pearl.errors import DataError

NODE_MISFIT = "node features have {have} columns, the encoder was built for {expected}"
_REMEDIES = {
    "x": "give the nodes a column, of ones for example",
    "edge_attr": "use dataset.edge_encoder_name DummyEdge",
}


def features_of(batch: Batch, attribute: str, reader: Any) -> Tensor:
    """``x`` or ``edge_attr`` of a batch, which the encoder ``reader`` cannot do without."""
    features: Tensor | None = getattr(batch, attribute, None)
    if features is None:
        name = getattr(reader, "name", type(reader).__name__.removesuffix("Encoder"))
        raise DataError(f"{name} reads {attribute}, and the graphs have none; {_REMEDIES[attribute]}")
    return features


def apply_linear(linear: nn.Linear, features: Tensor, misfit: str = NODE_MISFIT) -> Tensor:
    """``misfit`` says what is wrong where there are other columns: {have} instead of {expected}."""
    features = features.view(-1, 1) if features.dim() == 1 else features
    if features.size(1) != linear.in_features:
        raise DataError(misfit.format(have=features.size(1), expected=linear.in_features))
    return linear(features.to(linear.weight.dtype))


class LinearNodeEncoder(nn.Module):
    """``batch.x`` [N, share.dim_in] to [N, dim_emb]."""

    def __init__(self, dim_emb: int, cfg: Any = None) -> None:
        super().__init__()
        self.encoder = nn.Linear((active_cfg if cfg is None else cfg).share.dim_in, dim_emb)

    def forward(self, batch: Batch) -> Batch:
        """Replace ``batch.x`` by its image."""
        batch.x = apply_linear(self.encoder, features_of(batch, "x", self))
        return batch


class LinearEdgeEncoder(nn.Module):
    """``batch.edge_attr`` [E, dataset.edge_encoder_dim_in] (or [E]) to [E, dim_emb]."""

    misfit = "dataset.edge_encoder_dim_in: {expected}, but edges have {have} columns"

    def __init__(self, dim_emb: int, cfg: Any = None) -> None:
        super().__init__()
        self.encoder = nn.Linear(self.columns((active_cfg if cfg is None else cfg).dataset), dim_emb)

    def columns(self, dataset: Any) -> int:
        """Number of edge feature columns, by the config group ``dataset``."""
        return int(dataset.edge_encoder_dim_in)

    def forward(self, batch: Batch) -> Batch:
        """Replace ``batch.edge_attr`` by its image."""
        batch.edge_attr = apply_linear(self.encoder, features_of(batch, "edge_attr", self), self.misfit)
        return batch


class VOCEdgeEncoder(LinearEdgeEncoder):
    """``batch.edge_attr`` of superpixels: two columns for region boundaries, one for other graphs."""

    misfit = "VOCEdge reads {expected} columns, and edges have {have}; use LinearEdge"

    def columns(self, dataset: Any) -> int:
        """By ``dataset.name``."""
        return 1 if dataset.name in ("edge_wt_coord_feat", "edge_wt_only_coord") else 2


class PPAEdgeEncoder(LinearEdgeEncoder):
    """``batch.edge_attr`` [E, 7] of ogbg-ppa."""

    misfit = "PPAEdge reads {expected} columns, and edges have {have}; use LinearEdge"

    def columns(self, dataset: Any) -> int:
        """Seven kinds of association."""
        return 7
