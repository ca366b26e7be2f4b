"""SignNet is its formula, and depends on the basis of an eigenspace."""

from __future__ import annotations

import torch
from helpers.encoding_cases import batch_of, molecule
from helpers.spectral import dense_gin, encode, rotated

from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.signnet import SignNet
from graphgps_pearl.encoders.transforms import laplacian_eigen


def test_signnet_does_mind_the_basis() -> None:
    encoder, data = encode("SignNet", "posenc_SignNet.eigen.max_freqs", 0)
    encoder.eval()
    ring_alone = [data[1]]
    turned = [rotated(data[1], "SignNet")]
    assert not torch.allclose(encoder(batch_of(turned)).x, encoder(batch_of(ring_alone)).x, atol=1e-3)


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
