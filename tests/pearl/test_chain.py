"""A layer in blocks equals the layer written out: values, gradients, running statistics."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest
import torch
from helpers.graphs import batch_of, molecule_like
from torch import Tensor, nn

from graphgps_pearl.pearl import BPEARL, RPEARL, GINLayer, TapLayer, blocks, phi
from graphgps_pearl.pearl.dispatch import in_blocks
from graphgps_pearl.pearl.sparse import SparseMatrix

SIZES = {"num_layers": 3, "mlp_layers": 3, "mlp_hidden": 9, "hidden_dim": 6}


@pytest.fixture
def written_out(monkeypatch: pytest.MonkeyPatch) -> object:
    """Runs something without blocks."""

    def run(function: object) -> object:
        with monkeypatch.context() as patch:
            patch.setattr(phi, "in_blocks", lambda *_: None)
            return function()

    return run


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_BLOCK", 700)  # several blocks, the last one smaller


def everything(module: nn.Module, run: object, x: Tensor | None = None) -> list[Tensor]:
    """Outputs, gradients and buffers of a copy of the module."""
    module = copy.deepcopy(module)
    out = run(module)
    generator = torch.Generator().manual_seed(3)
    direction = torch.randn(out.shape, generator=generator, dtype=out.dtype)
    wanted = [*module.parameters(), *([x] if x is not None else [])]
    gradients = torch.autograd.grad((out * direction).sum(), wanted)
    return [out, *gradients, *module.buffers()]


def assert_same(a: list[Tensor], b: list[Tensor], tolerance: float = 1e-9) -> None:
    assert len(a) == len(b)
    for first, second in zip(a, b, strict=True):
        torch.testing.assert_close(first, second, rtol=tolerance, atol=tolerance)


def stirred(module: nn.Module) -> nn.Module:
    """Norms and epsilons away from where they start; one norm's weight of each sign, and zero."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in module.named_parameters():
        if parameter.dim() == 1:
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.data += 0.5 * noise
            if name.endswith("norms.0.weight"):
                parameter.data[:2] = torch.tensor([0.0, -0.7])
    return module


@pytest.mark.parametrize("skip", ["none", "residual", "sum"])
@pytest.mark.parametrize("num_taps", [0, 1, 4])
@pytest.mark.parametrize("quotient", [True, False])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_bpearl(norm: str, quotient: bool, num_taps: int, skip: str, written_out) -> None:  # type: ignore[no-untyped-def]
    data = batch_of(*[(molecule_like(n), n) for n in (5, 14, 21)])
    pe = stirred(BPEARL(4, num_taps=num_taps, skip=skip, quotient=quotient, norm=norm, **SIZES).double())

    def run() -> list[Tensor]:
        return everything(pe, lambda module: module(data.edge_index, data.batch))

    assert_same(run(), written_out(run))


@pytest.mark.parametrize("norm", ["batch", "graph", "layer"])
def test_rpearl(norm: str, written_out) -> None:  # type: ignore[no-untyped-def]
    data = batch_of(*[(molecule_like(n), n) for n in (5, 14, 21)])
    pe = stirred(RPEARL(4, num_samples=7, norm=norm, num_taps=3, **SIZES).double())
    samples = torch.randn(40, 7, dtype=torch.float64)

    def run() -> list[Tensor]:
        return everything(pe, lambda module: module(data.edge_index, data.batch, samples=samples))

    assert_same(run(), written_out(run))


def layer_rows(num_rows: int, num_before: int) -> SimpleNamespace:
    """Rows that stand for several, made of fewer rows one layer earlier."""
    generator = torch.Generator().manual_seed(0)
    parent = torch.randint(num_before, (num_rows,), generator=generator)
    matrix = SparseMatrix.from_entries(
        torch.randint(num_rows, (2 * num_rows,), generator=generator),
        torch.randint(num_before, (2 * num_rows,), generator=generator),
        torch.ones(2 * num_rows, dtype=torch.float64),
        num_rows,
        num_before,
    )
    weight = torch.randint(1, 1000, (num_rows,), generator=generator)
    weight[0] = 10**7
    return SimpleNamespace(
        parent=parent,
        matrix=matrix,
        weight=weight,
        keep=lambda x: x.index_select(0, parent),
        neighbours=lambda x: matrix @ x,
    )


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_gin_layer(norm: str, skip: bool, offset: float, written_out) -> None:  # type: ignore[no-untyped-def]
    """Also where means are far from zero, and where one row weighs more than all the others."""
    rows = layer_rows(500, 130)
    layer = stirred(GINLayer(6, 6, mlp_layers=2, mlp_hidden=8, norm=norm).double())
    x = (torch.randn(130, 6, dtype=torch.float64) + offset).requires_grad_()

    def run() -> list[Tensor]:
        return everything(layer, lambda module: module(x, rows, skip=skip), x)

    assert_same(run(), written_out(run), tolerance=1e-9 * max(offset, 1))


def test_constant_column(written_out) -> None:  # type: ignore[no-untyped-def]
    """A column without variance is only shifted, in float32 too."""
    layer = stirred(TapLayer(1, 4, num_taps=2, norm="batch"))
    x = torch.ones(300, 2)
    out, *_, var = everything(layer, lambda module: module.lift(x, SimpleNamespace(weight=None)))
    torch.testing.assert_close(out, layer.norm.bias.relu().expand(300, 4), atol=1e-5, rtol=0)
    torch.testing.assert_close(var, torch.full((4,), 0.9))


@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_gradients_by_finite_differences(norm: str) -> None:
    rows = layer_rows(60, 20)
    rows.weight = torch.randint(1, 5, (60,))
    layer = stirred(GINLayer(3, 3, mlp_hidden=4, norm=norm).double())
    x = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x, rows, skip=True), x)


def test_what_is_written_out() -> None:
    x, rows = torch.ones(2, 2), SimpleNamespace(weight=None)

    def can(x: Tensor, layer: TapLayer, act: str = "relu") -> bool:
        return in_blocks(x, [(layer.weight[0].t(), layer.bias)], [layer.norm], act, rows) is not None

    batch = TapLayer(2, 3, 1, norm="batch")
    assert can(x, batch) and can(x, TapLayer(2, 3, 1, norm="layer", bias=True))
    assert not can(x, batch, "gelu")
    assert not can(x.half(), batch) and not can(x.double(), batch)
    assert not can(x, TapLayer(2, 3, 1, norm="none")) and not can(x, TapLayer(2, 3, 1, norm="graph"))
    with torch.autocast("cpu", torch.bfloat16):
        assert not can(x, batch)
    assert not can(x, batch.eval())
