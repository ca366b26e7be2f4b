"""Eigenvectors are known up to sign, and in an eigenspace up to a rotation: who minds, and who does not."""

from __future__ import annotations

import pytest
import torch
from helpers.encoding_cases import batch_of
from helpers.half_sums import RefuseHalfSums
from helpers.spectral import encode, flipped


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


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("LapPE", ()),
        ("SignNet", ("posenc_SignNet.eigen.max_freqs", 0)),
        ("SPE", ()),
        ("SPE", ("posenc_SPE.model", "DeepSet")),
        ("BasisNet", ()),
    ],
)
def test_sums_in_mixed_precision_are_taken_in_float32(name: str, overrides: tuple[object, ...]) -> None:
    """All eigenvectors, or all nodes, of a graph are added up."""
    encoder, data = encode(name, *overrides)
    encoder.eval()
    expected = encoder(batch_of(data)).x
    with RefuseHalfSums(), torch.autocast("cpu", dtype=torch.bfloat16):
        found = encoder(batch_of(data)).x
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)
