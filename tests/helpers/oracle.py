"""Comparisons with :mod:`graphgps_pearl.pearl.reference`, the dense definition."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import grad

from graphgps_pearl.pearl import BPEARL, RPEARL, reference
from graphgps_pearl.pearl.reference import encode, phi
from graphgps_pearl.pearl.reference import encode_pairs as pairs
from graphgps_pearl.pearl.reference import shift_operator as dense_gso

__all__ = ["assert_matches", "close", "dense_gso", "encode", "pairs", "phi"]


def assert_matches(
    module: BPEARL | RPEARL,
    edge_index: Tensor,
    batch: Tensor,
    samples: Tensor | None = None,
    edge_weight: Tensor | None = None,
) -> None:
    """The module's output and the gradient of every parameter equal the reference's to 1e-9 (float64)."""
    more = {} if samples is None else {"samples": samples}
    fast = module(edge_index, batch, edge_weight=edge_weight, **more)
    slow = reference.encode(module, edge_index, batch, samples, edge_weight)
    close(fast, slow, "output")
    direction = torch.randn(fast.shape, generator=torch.Generator().manual_seed(7), dtype=fast.dtype)
    names, parameters = zip(*module.named_parameters(), strict=True)
    for name, a, b in zip(
        names,
        grad((fast * direction).sum(), parameters),
        grad((slow * direction).sum(), parameters),
        strict=True,
    ):
        close(a, b, f"gradient of {name}")


def close(a: Tensor, b: Tensor, what: str) -> None:
    assert a.shape == b.shape, what
    if not b.numel():
        return
    error = float(((a - b).abs().max() / b.abs().max().clamp(min=1)).detach())
    assert error <= 1e-9, f"{what} is off by {error:.3g}"
