"""From raw graphs to what networks read: node encoders, then the edge encoder, each with optional norm."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.graphgym.config import cfg as active_cfg
from torch_geometric.nn.norm import BatchNorm
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.encoders.base import edge_width
from graphgps_pearl.encoders.compose import (
    ComposedNodeEncoder,
    Part,
    build_encoder,
    find_edge_encoder,
    required_by,
    resolve,
)
from graphgps_pearl.errors import ConfigError, DataError
from graphgps_pearl.ogb_features import ogb_features


def _parts(cfg: Any) -> list[Part]:
    return resolve(cfg.dataset.node_encoder_name, cfg) if cfg.dataset.node_encoder else []


def required_transforms(cfg: Any) -> list[BaseTransform]:
    """What the encodings of ``dataset.node_encoder_name`` need precomputed, without duplicates.

    The text of a transform carries all its settings, so it can key a cache of prepared data.
    """
    return required_by(_parts(cfg))


def check_features(cfg: Any, graph: Data) -> None:
    """Make sure that a graph has what the encoders of OGB's features read; the others say so themselves."""
    if cfg.dataset.node_encoder and cfg.dataset.node_encoder_name.split("+")[0] == "Atom":
        _check_ogb(cfg, graph, "x", "node_encoder_name: Atom", "atoms", "LinearNode")
    if cfg.dataset.edge_encoder and cfg.dataset.edge_encoder_name == "Bond":
        _check_ogb(cfg, graph, "edge_attr", "edge_encoder_name: Bond", "bonds", "LinearEdge or DummyEdge")


def _check_ogb(cfg: Any, graph: Data, attribute: str, encoder: str, what: str, others: str) -> None:
    features, ogb = getattr(graph, attribute, None), ogb_features()
    if features is None or features.is_floating_point():
        has = "none" if features is None else "real-valued ones"
        raise ConfigError(
            f"dataset.{encoder} reads OGB's integer features and {cfg.dataset.name} has {has}; "
            f"use {others}, or other dataset.features"
        )
    sizes = ogb.get_atom_feature_dims() if what == "atoms" else ogb.get_bond_feature_dims()
    if features.dim() != 2 or features.size(1) > len(sizes):
        raise ConfigError(
            f"dataset.{encoder} reads OGB's {len(sizes)} columns and {attribute} of {cfg.dataset.name} is "
            f"{list(features.shape)}; use {'TypeDictNode' if what == 'atoms' else 'TypeDictEdge'}, {others}"
        )
    for column, (values, size) in enumerate(zip(features.t(), sizes, strict=False)):
        wrong = values[(values < 0) | (values >= size)]
        if len(wrong):
            raise DataError(
                f"{attribute} has {int(wrong[0])} in column {column}, where OGB's {what} have 0 to {size - 1}"
            )


def injected_dim(cfg: Any) -> int:
    """Width of what enters every layer: the encodings with ``inject: every_layer`` together."""
    return sum(part.injected for part in _parts(cfg))


class FeatureEncoder(nn.Module):
    """Encodes ``batch.x`` [N, dim_in] and ``batch.edge_attr``, and adds the edge columns of encodings to it.

    Args:
        cfg: The config. It becomes GraphGym's active one only where a third party's encoder is built.
        dim_in: Number of raw node feature columns.

    Attributes:
        dim_in: Width of ``batch.x`` afterwards.
        edge_dim: Width of ``batch.edge_attr`` afterwards, 0 without an edge encoder.
    """

    def __init__(self, cfg: Any, dim_in: int) -> None:
        super().__init__()
        if cfg is not active_cfg:
            cfg = cfg.clone()
            cfg.defrost()
        cfg.share["dim_in"] = dim_in
        self.dim_in, self.edge_dim = dim_in, 0
        self.node_encoder: nn.Module | None = None
        self.edge_encoder: nn.Module | None = None
        self.node_norm: nn.Module | None = None
        self.edge_norm: nn.Module | None = None
        if cfg.dataset.node_encoder:
            self.dim_in = cfg.gnn.dim_inner
            self.node_encoder = ComposedNodeEncoder(cfg.dataset.node_encoder_name, self.dim_in, cfg)
            if cfg.dataset.node_encoder_bn:
                self.node_norm = BatchNorm(
                    self.dim_in, eps=cfg.bn.eps, momentum=cfg.bn.mom, allow_single_element=True
                )
        if cfg.dataset.edge_encoder:
            self.edge_dim = edge_width(cfg)
            factory = find_edge_encoder(cfg.dataset.edge_encoder_name)
            self.edge_encoder = build_encoder(factory, self.edge_dim, cfg)
            if cfg.dataset.edge_encoder_bn:
                self.edge_norm = BatchNorm(
                    self.edge_dim, eps=cfg.bn.eps, momentum=cfg.bn.mom, allow_single_element=True
                )

    def forward(self, batch: Batch) -> Batch:
        """Encode nodes, then edges."""
        if self.node_encoder is not None:
            batch = self.node_encoder(batch)
        if self.node_norm is not None:
            batch.x = self.node_norm(batch.x)
        if self.edge_encoder is not None:
            batch = self.edge_encoder(batch)
            columns = EncoderOutput.of(batch).edges
            if columns is not None:
                batch.edge_attr = batch.edge_attr + columns
        if self.edge_norm is not None:
            batch.edge_attr = self.edge_norm(batch.edge_attr)
        return batch
