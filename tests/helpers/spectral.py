"""Eigenvectors with other signs and bases, for the tests of spectral encodings."""

from __future__ import annotations

import torch
from helpers.encoding_cases import batch_of, encoder_config, graphs
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.encoders import FeatureEncoder, required_transforms
from graphgps_pearl.encoders.gin import GIN


def flipped(data: Data, name: str, signs: Tensor) -> Data:
    """The eigenvectors of an encoding with these signs."""
    out = data.clone()
    vectors = out[f"eigvecs_{name}"].view(out.num_nodes, -1)
    out[f"eigvecs_{name}"] = (vectors * signs[: vectors.size(1)]).flatten()
    return out


def rotated(data: Data, name: str) -> Data:
    """Another orthonormal basis of every eigenspace."""
    out = data.clone()
    values = out[f"eigvals_{name}"]
    vectors = out[f"eigvecs_{name}"].view(out.num_nodes, -1).clone()
    generator = torch.Generator().manual_seed(5)
    for value in values.unique():
        space = (values - value).abs() < 1e-4
        size = int(space.sum())
        rotation, _ = torch.linalg.qr(torch.randn(size, size, generator=generator))
        vectors[:, space] = vectors[:, space] @ rotation
    out[f"eigvecs_{name}"] = vectors.flatten()
    return out


def encode(name: str, *overrides: object) -> tuple[FeatureEncoder, list[Data]]:
    """An encoder that has seen the graphs once, and the graphs."""
    cfg = encoder_config(f"TypeDictNode+{name}", *overrides)
    torch.manual_seed(0)
    encoder = FeatureEncoder(cfg, 1)
    data = graphs(required_transforms(cfg))
    encoder(batch_of(data))
    return encoder, data


def dense_gin(gin: GIN, x: Tensor, adjacency: Tensor) -> Tensor:
    """The GIN with a dense adjacency."""
    for update in gin.updates:
        x = update(x + adjacency @ x)
    return x
