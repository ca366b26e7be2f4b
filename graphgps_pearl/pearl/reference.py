r"""The definition of both encodings in dense matrices, one signal after another: slow and plain to check.

It reads the weights of a module and computes what that module has to return. Every fast path is tested
against it. The signals of one graph are a list of matrices :obj:`[n, F]`; a batch is a list of such lists.

>>> from graphgps_pearl.pearl import BPEARL
>>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
>>> module = BPEARL(dim_pe=5, hidden_dim=8, num_layers=2, num_taps=4).double()
>>> torch.allclose(module(ring), encode(module, ring), rtol=1e-10)
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgps_pearl.pearl.bpearl import BPEARL
from graphgps_pearl.pearl.norm import GraphNorm, LayerNorm, NoNorm
from graphgps_pearl.pearl.phi import ACTIVATIONS, TapLayer
from graphgps_pearl.pearl.rpearl import RPEARL

Matrices = list[list[Tensor]]  # [graph][signal] -> [n, F]

STATISTICS: dict[str, Callable[[Tensor], Tensor]] = {  # ρ, of [M, n, D]
    "mean": lambda x: x.mean(0),
    "sum": lambda x: x.sum(0),
    "var": lambda x: x.var(0, unbiased=False),
    "std": lambda x: x.std(0, unbiased=False),
    "max": lambda x: x.amax(0),
    "self": lambda x: x.diagonal().T,
}


def encode(
    module: BPEARL | RPEARL,
    edge_index: Tensor,
    batch: Tensor | None = None,
    samples: Tensor | None = None,
    edge_weight: Tensor | None = None,
) -> Tensor:
    """What ``module(edge_index, batch)`` has to be; R-PEARL's samples :obj:`[N, M]` have to be given."""
    A, signals = _graphs(edge_index, batch, samples, edge_weight)
    S = [shift_operator(module.gso, a) for a in A]
    P = phi(module.phi, _columns(signals), A, S)  # Φ(G, q^(m))
    encodings = []
    for a, outputs, taps in zip(A, P, _tap_columns(module, S, signals), strict=True):
        pe = torch.cat([STATISTICS[name](torch.stack(outputs)) for name in module.pool] + taps, dim=1)
        if module.project is not None:
            pe = module.project(pe)
        encodings.append(pe / (len(a) ** 0.5 * len(module.phi.layers)) if module.scale else pe)
    return torch.cat(encodings)


def encode_pairs(module: BPEARL, edge_index: Tensor, batch: Tensor | None = None) -> list[Tensor]:
    """Φ(G, e_m)_v of each graph, :obj:`[n, n, D]` by (v, m)."""
    A, signals = _graphs(edge_index, batch, None, None)
    P = phi(module.phi, _columns(signals), A, [shift_operator(module.gso, a) for a in A])
    return [torch.stack(outputs, dim=1) for outputs in P]


def adjacency(edge_index: Tensor, n: int, edge_weight: Tensor | None = None) -> Tensor:
    """A[v, u] = the sum of the weights of the edges from u to v, :obj:`[n, n]`."""
    A = torch.zeros(n, n, dtype=torch.float64)
    weights = [1.0] * edge_index.size(1) if edge_weight is None else edge_weight.tolist()
    for (u, v), weight in zip(edge_index.T.tolist(), weights, strict=True):
        A[v, u] += weight
    return A


def shift_operator(name: str, A: Tensor) -> Tensor:
    """S of a dense adjacency matrix; 1/0 is 0."""
    d_in, d_out = A.sum(1), A.sum(0)
    inv_in, inv_out = (torch.where(d > 0, 1 / d, torch.zeros_like(d)) for d in (d_in, d_out))
    normalised = torch.diag(inv_in.sqrt()) @ A @ torch.diag(inv_out.sqrt())
    return {
        "adjacency": A,
        "laplacian": torch.diag(d_in) - A,
        "sym_adjacency": normalised,
        "sym_laplacian": torch.eye(len(A), dtype=A.dtype) - normalised,
        "random_walk": A @ torch.diag(inv_out),
    }[name]


def phi(network: Any, X: Matrices, A: list[Tensor], S: list[Tensor]) -> Matrices:
    """Every signal of every graph through all the layers."""
    outputs: list[Matrices] = []
    for layer in network.layers:
        Y = tap_layer(layer, X, S) if isinstance(layer, TapLayer) else gin_layer(layer, X, A)
        if network.skip == "residual" and layer.in_dim == layer.out_dim:
            Y = [[y + x for x, y in zip(xs, ys, strict=True)] for xs, ys in zip(X, Y, strict=True)]
        X = Y
        outputs.append(Y)
    if network.skip == "sum":
        X = [[sum(layers) for layers in zip(*graph, strict=True)] for graph in zip(*outputs, strict=True)]
    return X if network.readout is None else _each(network.readout, X)


def tap_layer(layer: TapLayer, X: Matrices, S: list[Tensor]) -> Matrices:
    """X' = σ(norm(Σ_k S^k X H_k)), with the powers of S formed."""
    bias = 0 if layer.bias is None else layer.bias
    Z = [
        [
            sum(torch.linalg.matrix_power(s, k) @ x @ layer.weight[k] for k in range(layer.num_taps)) + bias
            for x in xs
        ]
        for xs, s in zip(X, S, strict=True)
    ]
    return _each(ACTIVATIONS[layer.act], normalise(layer.norm, Z))


def gin_layer(layer: Any, X: Matrices, A: list[Tensor]) -> Matrices:
    """X' = MLP((1 + ε) X + A X)."""
    Z = [[(1 + layer.eps) * x + a @ x for x in xs] for xs, a in zip(X, A, strict=True)]
    for linear, norm in zip(layer.linears, layer.norms, strict=True):
        Z = normalise(norm, _each(linear, Z))
        if linear is not layer.linears[-1] or layer.end == "activation":
            Z = _each(ACTIVATIONS[layer.act], Z)
    return Z


def normalise(norm: Any, X: Matrices) -> Matrices:
    """Batch norm over everything, or over one graph at a time; layer norm over each row."""
    if isinstance(norm, NoNorm):
        return X
    if isinstance(norm, LayerNorm):
        return _each(lambda x: F.layer_norm(x, x.shape[1:], norm.weight, norm.bias), X)
    if not norm.training:
        return _each(
            lambda x: F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight, norm.bias), X
        )
    if isinstance(norm, GraphNorm):
        return [_batch_norm(norm, [xs])[0] for xs in X]
    return _batch_norm(norm, X)


def _batch_norm(norm: Any, X: Matrices) -> Matrices:
    """γ (x - μ) / sqrt(σ² + 1e-5) + β over all rows of all signals."""
    rows = torch.cat([x for xs in X for x in xs])
    mean, var = rows.mean(0), rows.var(0, unbiased=False)
    return _each(lambda x: norm.weight * (x - mean) / (var + 1e-5).sqrt() + norm.bias, X)


def _tap_columns(module: BPEARL | RPEARL, S: list[Tensor], signals: list[Tensor]) -> list[list[Tensor]]:
    """What a module with taps appends to the statistics of each graph, normalised; empty for the others.

    B-PEARL: diag(S^k), k = 1 to K - 1. R-PEARL: (S^j q)_v (S^k q)_v, mean over the samples and over j + k =
    s, for s = 1 to 2 K - 2.
    """
    if module.tap_norm is None:
        return [[] for _ in S]
    first = module.phi.layers[0]
    assert isinstance(first, TapLayer)
    K = first.num_taps
    columns = []
    for s, q in zip(S, signals, strict=True):
        powers = [torch.linalg.matrix_power(s, k) for k in range(K)]
        if isinstance(module, BPEARL):
            columns.append([power.diag() for power in powers[1:]])
        else:
            taps = [power @ q for power in powers]
            products = {
                total: [
                    (taps[j] * taps[total - j]).mean(1)
                    for j in range(max(0, total - K + 1), min(total, K - 1) + 1)
                ]
                for total in range(1, 2 * K - 1)
            }
            columns.append([sum(terms) / len(terms) for terms in products.values()])
    return normalise(module.tap_norm, [[torch.stack(column, dim=1)] for column in columns])


def _graphs(
    edge_index: Tensor, batch: Tensor | None, samples: Tensor | None, edge_weight: Tensor | None
) -> tuple[list[Tensor], list[Tensor]]:
    """Dense adjacency and signals :obj:`[n, M]` of each graph; without samples the standard basis."""
    if batch is None:
        batch = torch.zeros(int(edge_index.max()) + 1, dtype=torch.long)
    A, signals = [], []
    for g in batch.unique().tolist():
        nodes = (batch == g).nonzero().flatten()
        inside = (batch[edge_index[0]] == g).nonzero().flatten()
        weights = None if edge_weight is None else edge_weight[inside]
        A.append(adjacency(edge_index[:, inside] - nodes[0], len(nodes), weights))
        signals.append(torch.eye(len(nodes), dtype=torch.float64) if samples is None else samples[nodes])
    return A, signals


def _columns(signals: list[Tensor]) -> Matrices:
    return [[q[:, None] for q in Q.T] for Q in signals]


def _each(function: Callable[[Tensor], Tensor], X: Matrices) -> Matrices:
    """The function of every signal's matrix."""
    return [[function(x) for x in xs] for xs in X]
