"""Layers in evaluation with folded norms equal the plain layers."""

from __future__ import annotations

import copy

import pytest
import torch
from helpers.graphs import batch_of, molecule_like

from graphgps_pearl.pearl import BPEARL, RPEARL, GINLayer, TapLayer
from graphgps_pearl.pearl.base import PEARL
from graphgps_pearl.pearl.kernels import folded
from graphgps_pearl.pearl.norm import BatchNorm
from graphgps_pearl.switches import use_kernels

DATA = batch_of(*[(molecule_like(n), n) for n in (5, 14, 21)])
SIZES = {"num_layers": 3, "mlp_layers": 3, "mlp_hidden": 9, "hidden_dim": 6, "num_taps": 3}


def trained(pe: PEARL) -> PEARL:
    """With weights and running statistics away from where they start."""
    pe = pe.double()
    generator = torch.Generator().manual_seed(1)
    for name, tensor in [*pe.named_parameters(), *pe.named_buffers()]:
        noise = torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype)
        tensor.data += noise if name.endswith("var") else noise - 0.5
    return pe.eval()


@pytest.mark.parametrize(
    "pe",
    [
        RPEARL(4, num_samples=7, pool="mean+std", **SIZES),
        RPEARL(4, num_samples=7, norm="graph", skip="sum", act="gelu", **SIZES),
        RPEARL(4, num_samples=7, norm="none", skip="none", **SIZES),
        RPEARL(4, num_samples=7, end="linear", **SIZES),
        BPEARL(4, quotient=True, pool="sum+self", **SIZES),
        BPEARL(4, quotient=False, **SIZES),
        BPEARL(4, quotient=True, **{**SIZES, "hidden_dim": 1}),  # the signal skips the taps
    ],
    ids=["relu", "gelu", "none", "linear", "merged", "pairs", "one column"],
)
def test_evaluation(pe: PEARL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folded, "_BLOCK", 700)  # several blocks
    calls = []
    run = folded.evaluated
    monkeypatch.setattr(folded, "evaluated", lambda *words: calls.append(1) or run(*words))
    trained(pe)
    with torch.no_grad():
        with use_kernels(True):
            fast = pe(DATA)
        with use_kernels(False):
            plain = pe(DATA)
    assert len(calls) == len(pe.phi.layers)
    torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-9)


def test_where_it_serves() -> None:
    layer, x = GINLayer(4, 4).eval(), torch.ones(3, 4)
    assert not folded.serves(layer, x)  # a gradient may be wanted
    with torch.no_grad():
        assert folded.serves(layer, x)
        assert not folded.serves(layer, x.double()) and not folded.serves(layer, x.half())
        assert not folded.serves(TapLayer(1, 4, 2, norm="layer").eval(), x)
        assert not folded.serves(layer.train(), x)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("norms_train", [False, True])
@pytest.mark.parametrize("kind", [BPEARL, RPEARL])
def test_norms_in_another_mode_than_their_layer(kind: type[PEARL], norms_train: bool, native: bool) -> None:
    """Frozen norms in training, and norms whose statistics are re-estimated in evaluation."""
    wide = {"num_layers": 2, "hidden_dim": 8, "num_taps": 3}
    pe = trained(kind(4, **wide)).train(not norms_train)
    for module in pe.modules():
        if isinstance(module, BatchNorm):
            module.train(norms_train)
    results = []
    for kernels in (True, False):
        same = copy.deepcopy(pe)
        torch.manual_seed(0)
        with torch.no_grad(), use_kernels(kernels, native):
            results.append([same(DATA), *same.buffers()])
    for fast, plain in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-9)
    moved = not torch.equal(pe.phi.layers[0].norm.running_mean, results[0][1])
    assert moved == norms_train
