"""SPE is its formula, and does not depend on the basis of an eigenspace."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import batch_of, molecule, ring
from helpers.spectral import encode, rotated
from torch import Tensor

from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.spe import SPE, EigenvalueNet, filtered_identity
from graphgps_pearl.encoders.transforms import laplacian_eigen
from graphgps_pearl.pearl import check_graphs
from graphgps_pearl.pearl.rows import Operators, PairRows
from graphgps_pearl.switches import use_kernels


def test_spe_does_not_mind_the_basis_of_an_eigenspace() -> None:
    encoder, data = encode("SPE")
    encoder.eval()
    turned = [rotated(graph, "SPE") for graph in data]
    assert any(
        not torch.allclose(a.eigvecs_SPE.abs(), b.eigvecs_SPE.abs())
        for a, b in zip(data, turned, strict=True)
    )
    torch.testing.assert_close(encoder(batch_of(turned)).x, encoder(batch_of(data)).x, atol=1e-4, rtol=1e-3)


def test_filtered_identity_is_the_formula() -> None:
    sizes = [5, 1, 7]
    edges = [ring(5), torch.empty(2, 0, dtype=torch.long), molecule(7, 2)]
    batch = torch.repeat_interleave(torch.tensor(sizes))
    for limit in (None, 3):
        pairs = Pairs.of(batch, 3, limit)
        graphs = check_graphs(torch.empty(2, 0, dtype=torch.long), batch)
        nodes = PairRows(Operators(graphs, "adjacency", torch.float))
        eigen = [laplacian_eigen(e, n, max_freqs=limit or 0) for e, n in zip(edges, sizes, strict=True)]
        phi = torch.randn(int(pairs.slots.sum()), 2)
        rows = filtered_identity(torch.cat([v.flatten() for _, v in eigen]), phi, pairs, nodes)
        by_graph = phi.split([len(values) for values, _ in eigen])
        expected = [
            torch.einsum("vk,kl,uk->vul", vectors, weight, vectors).reshape(-1, 2)
            for (_, vectors), weight in zip(eigen, by_graph, strict=True)
        ]
        torch.testing.assert_close(rows, torch.cat(expected), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("deepset", [True, False])
def test_eigenvalue_functions_are_equivariant_in_the_eigenvalues(deepset: bool) -> None:
    torch.manual_seed(0)
    phi = EigenvalueNet(8, 3, 2, deepset)
    values, graph = torch.rand(7), torch.tensor([0, 0, 0, 0, 1, 1, 1])
    order = torch.tensor([2, 0, 3, 1, 6, 4, 5])
    torch.testing.assert_close(phi(values[order], graph, 2), phi(values, graph, 2)[order])
    alone = phi(values[4:], torch.zeros(3, dtype=torch.long), 1)
    torch.testing.assert_close(phi(values, graph, 2)[4:], alone)
    shifted = torch.cat([values[:1] + 1, values[1:]])
    assert torch.allclose(phi(shifted, graph, 2)[1:4], phi(values, graph, 2)[1:4]) is not deepset


def written_out(module: SPE, x: Tensor, adjacency: Tensor) -> Tensor:
    """The GIN of SPE in evaluation: X' = MLP((1 + ε) X + A X), the last linear map without norm and ReLU."""
    for layer in module.rho.layers:
        x = (1 + layer.eps) * x + adjacency @ x
        for linear, norm in zip(layer.linears, layer.norms, strict=True):
            z = (linear(x) - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
            x = torch.relu(norm.weight * z + norm.bias)
    return module.readout(x)


def test_spe_is_the_formula() -> None:
    torch.manual_seed(0)
    edges, n = molecule(8, 4), 8
    values, vectors = laplacian_eigen(edges, n, max_freqs=0)
    module = SPE(5, 6, 3, 8, 4, 2)
    pairs = Pairs.of(torch.zeros(n, dtype=torch.long), 1)
    module(values, vectors.flatten(), pairs, edges)  # statistics that are not 0 and 1
    module.eval()
    for layer in module.rho.layers:
        torch.nn.init.constant_(layer.eps, 0.3)
    adjacency = torch.zeros(n, n).index_put((edges[0], edges[1]), torch.tensor(1.0))
    phi = module.phi(values, torch.zeros(n, dtype=torch.long), 1)
    filters = torch.stack([vectors @ torch.diag(f) @ vectors.T for f in phi.T], dim=2)  # [n, n, m]
    expected = sum(written_out(module, filters[:, u], adjacency) for u in range(n))
    result = module(values, vectors.flatten(), pairs, edges)
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=1e-4)


def test_kernels_change_nothing_in_training() -> None:
    """Values, gradients and running statistics, in float64."""
    sizes, edges = [8, 5], [molecule(8, 4), ring(5)]
    batch = torch.repeat_interleave(torch.tensor(sizes))
    eigen = [laplacian_eigen(e, n, max_freqs=4) for e, n in zip(edges, sizes, strict=True)]
    values = torch.cat([v for v, _ in eigen]).double()
    vectors = torch.cat([v.flatten() for _, v in eigen]).double()
    edge_index = torch.cat([edges[0], edges[1] + 8], dim=1)
    found = []
    for kernels in (False, True):
        torch.manual_seed(0)
        module = SPE(5, 8, 3, 8, 4, 2).double()
        with use_kernels(kernels, kernels):
            out = module(values, vectors, Pairs.of(batch, 2, 4), edge_index)
            out.square().sum().backward()
        found.append([out, *(p.grad for p in module.parameters()), *module.buffers()])
    for plain, fast in zip(*found, strict=True):
        torch.testing.assert_close(fast, plain, atol=1e-9, rtol=1e-9)


def test_spe_needs_a_layer() -> None:
    with pytest.raises(ValueError, match="layers"):
        SPE(5, 8, 0, 8, 4, 2)
