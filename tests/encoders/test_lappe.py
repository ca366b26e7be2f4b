"""LapPE is its formula; it depends on signs, so training draws them."""

from __future__ import annotations

import torch
from helpers.encoding_cases import batch_of, molecule
from helpers.spectral import encode, flipped

from graphgps_pearl.encoders.lappe import LapPE
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.transforms import laplacian_eigen


def test_lappe_does_mind_signs_so_training_draws_them() -> None:
    encoder, data = encode("LapPE")
    signs = torch.tensor([1.0, -1, -1, 1])
    encoder.eval()
    expected = encoder(batch_of(data)).x
    assert not torch.allclose(encoder(batch_of([flipped(g, "LapPE", signs) for g in data])).x, expected)
    encoder.train()
    seen = {tuple(encoder(batch_of(data)).x.flatten()[-200:].tolist()) for _ in range(20)}
    assert 2 < len(seen) <= 16  # four slots, two signs each


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
