"""PEARL in a few lines that are slow and obviously right: dense matrices, one sample after another.

It reads the weights of a fast module and computes what that module should return. The samples of one graph
are a list of matrices [n, F]; a batch is a list of such lists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import grad

from graphgps_pearl.pearl import ACTIVATIONS, BPEARL, RPEARL, TapLayer
from graphgps_pearl.pearl.norm import GraphNorm, LayerNorm, NoNorm

from .graphs import dense_adjacency

Matrices = list[list[Tensor]]  # [graph][sample] -> [n, F]


def dense_gso(name: str, A: Tensor) -> Tensor:
    """The operator of a dense adjacency matrix; 1/0 is 0."""
    n = A.size(0)
    d_in, d_out = A.sum(1), A.sum(0)
    inv_in, inv_out = (torch.where(d > 0, 1 / d, torch.zeros_like(d)) for d in (d_in, d_out))
    normalised = torch.diag(inv_in.sqrt()) @ A @ torch.diag(inv_out.sqrt())
    return {
        "adjacency": A,
        "laplacian": torch.diag(d_in) - A,
        "sym_adjacency": normalised,
        "sym_laplacian": torch.eye(n, dtype=A.dtype) - normalised,
        "random_walk": A @ torch.diag(inv_out),
    }[name]


def encode(
    module: BPEARL | RPEARL, edge_index: Tensor, batch: Tensor, samples: Tensor | None = None
) -> Tensor:
    """What ``module(edge_index, batch)`` should be; R-PEARL's samples [N, M] have to be given."""
    encodings = []
    adjacencies, signals = _graphs(edge_index, batch, samples)
    operators = [dense_gso(module.gso, A) for A in adjacencies]
    X = [[q[:, None] for q in Q.T] for Q in signals]
    P = phi(module.phi, X, adjacencies, operators)
    beside = _tap_diagonals(module, operators)
    for A, outputs, taps in zip(adjacencies, P, beside, strict=True):
        pe = torch.cat([STATISTICS[name](torch.stack(outputs)) for name in module.pool] + taps, dim=1)
        if module.project is not None:
            pe = module.project(pe)
        encodings.append(pe / (len(A) ** 0.5 * len(module.phi.layers)) if module.scale else pe)
    return torch.cat(encodings)


def pairs(module: BPEARL, edge_index: Tensor, batch: Tensor) -> list[Tensor]:
    """Φ(G, e_m)[v] of each graph, [n, n, D] by (v, m)."""
    adjacencies, signals = _graphs(edge_index, batch, None)
    X = [[q[:, None] for q in Q.T] for Q in signals]
    P = phi(module.phi, X, adjacencies, [dense_gso(module.gso, A) for A in adjacencies])
    return [torch.stack(outputs, dim=1) for outputs in P]


def _tap_diagonals(module: BPEARL | RPEARL, operators: list[Tensor]) -> list[list[Tensor]]:
    """diag(S^k), k = 1 to K - 1, of each graph, normalised; nothing where the module has none."""
    norm = getattr(module, "tap_norm", None)
    if norm is None:
        return [[] for _ in operators]
    powers = range(1, module.phi.layers[0].num_taps)
    taps = [torch.stack([torch.linalg.matrix_power(S, k).diag() for k in powers], dim=1) for S in operators]
    return normalise(norm, [[t] for t in taps])


def _graphs(edge_index: Tensor, batch: Tensor, samples: Tensor | None) -> tuple[list[Tensor], list[Tensor]]:
    """Dense adjacency and signals [n, M] of each graph."""
    adjacencies, signals = [], []
    for g in batch.unique().tolist():
        nodes = (batch == g).nonzero().flatten()
        inside = (batch[edge_index[0]] == g).nonzero().flatten()
        adjacencies.append(dense_adjacency(edge_index[:, inside] - nodes[0], len(nodes)))
        signals.append(torch.eye(len(nodes), dtype=torch.float64) if samples is None else samples[nodes])
    return adjacencies, signals


STATISTICS: dict[str, Callable[[Tensor], Tensor]] = {  # of [M, n, D]
    "mean": lambda x: x.mean(0),
    "sum": lambda x: x.sum(0),
    "var": lambda x: x.var(0, unbiased=False),
    "std": lambda x: x.std(0, unbiased=False),
    "max": lambda x: x.amax(0),
    "self": lambda x: x.diagonal().T,
}


def phi(network: Any, X: Matrices, A: list[Tensor], S: list[Tensor]) -> Matrices:
    """Every sample of every graph through all the layers."""
    outputs: list[Matrices] = []
    for layer in network.layers:
        Y = tap_layer(layer, X, S) if isinstance(layer, TapLayer) else gin_layer(layer, X, A)
        if network.skip == "residual" and layer.in_dim == layer.out_dim:
            Y = [[y + x for x, y in zip(xs, ys, strict=True)] for xs, ys in zip(X, Y, strict=True)]
        X = Y
        outputs.append(Y)
    if network.skip == "sum":
        X = [[sum(layers) for layers in zip(*graph, strict=True)] for graph in zip(*outputs, strict=True)]
    return X if network.readout is None else each(network.readout, X)


def tap_layer(layer: TapLayer, X: Matrices, S: list[Tensor]) -> Matrices:
    """X' = σ(norm(Σ_k S^k X H_k)), the powers formed."""
    Z = [
        [
            sum(torch.linalg.matrix_power(s, k) @ x @ layer.weight[k] for k in range(layer.num_taps))
            + (0 if layer.bias is None else layer.bias)
            for x in xs
        ]
        for xs, s in zip(X, S, strict=True)
    ]
    return each(ACTIVATIONS[layer.act], normalise(layer.norm, Z))


def gin_layer(layer: Any, X: Matrices, A: list[Tensor]) -> Matrices:
    """X' = MLP((1 + ε) X + A X)."""
    Z = [[(1 + layer.eps) * x + a @ x for x in xs] for xs, a in zip(X, A, strict=True)]
    for linear, norm in zip(layer.linears, layer.norms, strict=True):
        Z = each(ACTIVATIONS[layer.act], normalise(norm, each(linear, Z)))
    return Z


def normalise(norm: Any, X: Matrices) -> Matrices:
    """Batch norm over everything, or over one graph at a time; layer norm over each row."""
    if isinstance(norm, NoNorm):
        return X
    if isinstance(norm, LayerNorm):
        return each(lambda x: F.layer_norm(x, x.shape[1:], norm.weight, norm.bias), X)
    if not norm.training:
        return each(lambda x: F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias), X)
    if isinstance(norm, GraphNorm):
        return [batch_norm(norm, [xs])[0] for xs in X]
    return batch_norm(norm, X)


def batch_norm(norm: Any, X: Matrices) -> Matrices:
    """γ (x - μ) / sqrt(σ² + 1e-5) + β over all rows of all samples."""
    rows = torch.cat([x for xs in X for x in xs])
    mean, var = rows.mean(0), rows.var(0, unbiased=False)
    return each(lambda x: norm.weight * (x - mean) / (var + 1e-5).sqrt() + norm.bias, X)


def each(function: Callable[[Tensor], Tensor], X: Matrices) -> Matrices:
    """The function of every sample's matrix."""
    return [[function(x) for x in xs] for xs in X]


def assert_matches(
    module: BPEARL | RPEARL, edge_index: Tensor, batch: Tensor, samples: Tensor | None = None
) -> None:
    """The module's output and the gradient of every parameter equal the oracle's to 1e-9 (float64)."""
    fast = module(edge_index, batch) if samples is None else module(edge_index, batch, samples=samples)
    slow = encode(module, edge_index, batch, samples)
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
