"""Eigenvectors are known up to sign, and in an eigenspace up to a rotation: who minds, and who does not."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import batch_of, encoder_config, graphs, molecule, ring
from torch import Tensor
from torch_geometric.data import Data

from graphgps_pearl.encoders import FeatureEncoder, required_transforms
from graphgps_pearl.encoders.gin import GIN
from graphgps_pearl.encoders.lappe import LapPE
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.signnet import SignNet
from graphgps_pearl.encoders.spe import SPE, EigenvalueNet, filtered_identity
from graphgps_pearl.encoders.transforms import laplacian_eigen


def flipped(data: Data, name: str, signs: Tensor) -> Data:
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
    cfg = encoder_config(f"TypeDictNode+{name}", *overrides)
    torch.manual_seed(0)
    encoder = FeatureEncoder(cfg, 1)
    data = graphs(required_transforms(cfg))
    encoder(batch_of(data))
    return encoder, data


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("SignNet", ()),
        ("SignNet", ("posenc_SignNet.model", "MLP")),
        ("SignNet", ("posenc_SignNet.eigen.max_freqs", 0)),
        ("SPE", ()),
        ("SPE", ("posenc_SPE.model", "DeepSet", "posenc_SPE.eigen.max_freqs", 4)),
    ],
)
def test_no_sign_changes_the_result(name: str, overrides: tuple[object, ...], training: bool) -> None:
    """In training too: batch norm must see the same rows whatever the signs."""
    encoder, data = encode(name, *overrides)
    encoder.train(training)
    signs = torch.tensor([1.0, -1, -1, 1, -1, -1, 1, -1, 1])
    expected = encoder(batch_of(data)).x
    result = encoder(batch_of([flipped(graph, name, signs) for graph in data])).x
    torch.testing.assert_close(result, expected, atol=2e-4, rtol=1e-3)


def test_lappe_does_mind_signs_so_training_draws_them() -> None:
    encoder, data = encode("LapPE")
    signs = torch.tensor([1.0, -1, -1, 1])
    encoder.eval()
    expected = encoder(batch_of(data)).x
    assert not torch.allclose(encoder(batch_of([flipped(g, "LapPE", signs) for g in data])).x, expected)
    encoder.train()
    seen = {tuple(encoder(batch_of(data)).x.flatten()[-200:].tolist()) for _ in range(20)}
    assert 2 < len(seen) <= 16  # four slots, two signs each


def test_spe_does_not_mind_the_basis_of_an_eigenspace() -> None:
    encoder, data = encode("SPE")
    encoder.eval()
    turned = [rotated(graph, "SPE") for graph in data]
    assert any(
        not torch.allclose(a.eigvecs_SPE.abs(), b.eigvecs_SPE.abs())
        for a, b in zip(data, turned, strict=True)
    )
    torch.testing.assert_close(encoder(batch_of(turned)).x, encoder(batch_of(data)).x, atol=1e-4, rtol=1e-3)


def test_signnet_does_mind_the_basis() -> None:
    encoder, data = encode("SignNet", "posenc_SignNet.eigen.max_freqs", 0)
    encoder.eval()
    ring_alone = [data[1]]
    turned = [rotated(data[1], "SignNet")]
    assert not torch.allclose(encoder(batch_of(turned)).x, encoder(batch_of(ring_alone)).x, atol=1e-3)


def test_filtered_identity_is_the_formula() -> None:
    sizes = [5, 1, 7]
    edges = [ring(5), torch.empty(2, 0, dtype=torch.long), molecule(7, 2)]
    batch = torch.repeat_interleave(torch.tensor(sizes))
    for limit in (None, 3):
        pairs, nodes = Pairs.of(batch, 3, limit), Pairs.of(batch, 3)
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


def dense_gin(gin: GIN, x: Tensor, adjacency: Tensor) -> Tensor:
    for update in gin.updates:
        x = update(x + adjacency @ x)
    return x


def test_signnet_is_the_formula() -> None:
    torch.manual_seed(0)
    edges, n, k = molecule(8, 3), 8, 3
    _, vectors = laplacian_eigen(edges, n, max_freqs=k)
    module = SignNet(5, 6, 4, 3, 2, num_slots=k).eval()
    adjacency = torch.zeros(n, n).index_put((edges[0], edges[1]), torch.tensor(1.0))
    slots = [
        dense_gin(module.phi, v[:, None], adjacency) + dense_gin(module.phi, -v[:, None], adjacency)
        for v in vectors.T
    ]
    expected = module.rho(torch.cat(slots, dim=1))
    pairs = Pairs.of(torch.zeros(n, dtype=torch.long), 1, k)
    torch.testing.assert_close(module(vectors.flatten(), pairs, edges), expected, atol=1e-5, rtol=1e-4)


def test_spe_is_the_formula() -> None:
    torch.manual_seed(0)
    edges, n = molecule(8, 4), 8
    values, vectors = laplacian_eigen(edges, n, max_freqs=0)
    module = SPE(5, 6, 3, 8, 4, 2).eval()
    adjacency = torch.zeros(n, n).index_put((edges[0], edges[1]), torch.tensor(1.0))
    phi = module.phi(values, torch.zeros(n, dtype=torch.long), 1)
    filters = torch.stack([vectors @ torch.diag(f) @ vectors.T for f in phi.T], dim=2)  # [n, n, m]
    expected = sum(dense_gin(module.rho, filters[:, u], adjacency) for u in range(n))
    pairs = Pairs.of(torch.zeros(n, dtype=torch.long), 1)
    result = module(values, vectors.flatten(), pairs, edges)
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=1e-4)


def test_lappe_is_the_formula() -> None:
    torch.manual_seed(0)
    values, vectors = laplacian_eigen(molecule(8, 5), 8, max_freqs=3)
    module = LapPE(6, layers=3, post_layers=1).eval()
    expected = module.post(
        sum(module.lift(torch.stack([vectors[:, j], values[j].expand(8)], dim=1)) for j in range(3))
    )
    pairs = Pairs.of(torch.zeros(8, dtype=torch.long), 1, 3)
    result = module(pairs.of_graphs(values), vectors.flatten(), pairs)
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-5)


def test_empty_slots_do_not_count() -> None:
    """A graph of three nodes has three eigenvectors; asking for more must not change what they give."""
    data = graphs()[4:5]
    results = []
    for limit in (3, 9):
        for name in ("LapPE", "SignNet", "SPE"):
            cfg = encoder_config(f"TypeDictNode+{name}", f"posenc_{name}.eigen.max_freqs", limit)
            torch.manual_seed(0)
            encoder = FeatureEncoder(cfg, 1).eval()
            prepared = [t(graph.clone()) for graph in data for t in required_transforms(cfg)]
            results.append(encoder(batch_of(prepared)).x)
    for few, many in zip(results[:3], results[3:], strict=True):
        torch.testing.assert_close(few, many)


def test_pairs_index_rows_without_padding() -> None:
    batch = torch.tensor([0, 0, 1, 3, 3, 3])  # the third graph is empty
    pairs = Pairs.of(batch, 4, 2)
    assert pairs.slots.tolist() == [2, 1, 0, 2]
    assert pairs.node.tolist() == [0, 0, 1, 1, 2, 3, 3, 4, 4, 5, 5]
    assert pairs.slot.tolist() == [0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1]
    edges = pairs.edges(torch.tensor([[0, 4], [1, 5]]))
    assert edges.tolist() == [[0, 1, 7, 8], [2, 3, 9, 10]]
    rows = torch.arange(11.0)[:, None]
    assert pairs.sum_slots(rows).flatten().tolist() == [1, 5, 4, 11, 15, 19]
    dense, mask = pairs.padded(rows, 3)
    assert mask.sum() == 11 and dense[2].flatten().tolist() == [4, 0, 0]
