"""A layer in blocks equals the plain layer: values, gradients, running statistics."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from helpers.graphs import batch_of, molecule_like
from torch import Tensor, nn

from graphgps_pearl.pearl import BPEARL, RPEARL, GINLayer, TapLayer, kernels
from graphgps_pearl.pearl.hooks import apply_layer
from graphgps_pearl.pearl.kernels import blocked
from graphgps_pearl.pearl.operators import SparseMatrix
from graphgps_pearl.switches import use_kernels

SIZES = {"num_layers": 3, "mlp_layers": 3, "mlp_hidden": 9, "hidden_dim": 6}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "_BLOCK", 700)  # several blocks, the last one smaller


def plain(run: Callable[[], list[Tensor]]) -> list[Tensor]:
    with use_kernels(False):
        return run()


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
def test_bpearl(quotient: bool, num_taps: int, skip: str) -> None:
    data = batch_of(*[(molecule_like(n), n) for n in (5, 14, 21)])
    pe = stirred(BPEARL(4, num_taps=num_taps, skip=skip, quotient=quotient, **SIZES).double())

    def run() -> list[Tensor]:
        return everything(pe, lambda module: module(data.edge_index, data.batch))

    assert_same(run(), plain(run))


@pytest.mark.parametrize("norm", ["batch", "graph"])
def test_rpearl(norm: str) -> None:
    data = batch_of(*[(molecule_like(n), n) for n in (5, 14, 21)])
    pe = stirred(RPEARL(4, num_samples=7, norm=norm, num_taps=3, **SIZES).double())
    samples = torch.randn(40, 7, dtype=torch.float64)

    def run() -> list[Tensor]:
        return everything(pe, lambda module: module(data.edge_index, data.batch, samples=samples))

    assert_same(run(), plain(run))


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
        multiplicity=weight,
        own=lambda x: x.index_select(0, parent),
        neighbours=lambda x: matrix @ x,
    )


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("skip", [False, True])
def test_gin_layer(skip: bool, offset: float) -> None:
    """Also where means are far from zero, and where one row weighs more than all the others."""
    rows = layer_rows(500, 130)
    layer = stirred(GINLayer(6, 6, mlp_layers=2, mlp_hidden=8).double())
    x = (torch.randn(130, 6, dtype=torch.float64) + offset).requires_grad_()

    def run() -> list[Tensor]:
        return everything(layer, lambda module: apply_layer(module, x, rows, skip), x)

    assert_same(run(), plain(run), tolerance=1e-9 * max(offset, 1))


def test_constant_column() -> None:
    """A column without variance is only shifted, in float32 too."""
    layer = stirred(TapLayer(1, 4, num_taps=2, norm="batch"))
    x = torch.ones(300, 2)
    rows = SimpleNamespace(multiplicity=None, taps=lambda x, num_taps: x.unsqueeze(2))
    out, *_, var = everything(layer, lambda module: apply_layer(module, x, rows, False))
    torch.testing.assert_close(out, layer.norm.bias.relu().expand(300, 4), atol=1e-5, rtol=0)
    torch.testing.assert_close(var, torch.full((4,), 0.9))


def test_gradients_by_finite_differences() -> None:
    rows = layer_rows(60, 20)
    rows.multiplicity = torch.randint(1, 5, (60,))
    layer = stirred(GINLayer(3, 3, mlp_hidden=4).double())
    x = torch.randn(20, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: apply_layer(layer, x, rows, True), x)


def test_which_layers_the_kernel_serves() -> None:
    x = torch.ones(2, 2)
    rows = SimpleNamespace(multiplicity=None, taps=lambda x, num_taps: x.unsqueeze(1))

    def serves(x: Tensor, layer: TapLayer) -> bool:
        return kernels.apply_layer(layer, x, rows, False) is not None

    batch = TapLayer(2, 3, 1, norm="batch")
    assert serves(x, batch)
    assert not serves(x, TapLayer(2, 3, 1, norm="batch", act="gelu"))
    assert not serves(x.half(), batch) and not serves(x.double(), batch)
    for norm in ("none", "graph", "layer"):
        assert not serves(x, TapLayer(2, 3, 1, norm=norm))
    with torch.autocast("cpu", torch.bfloat16):
        assert not serves(x, batch)
    batch.norm.reduce = lambda sums: sums  # several processes
    assert not serves(x, batch)
    batch.norm.reduce = None
    assert not serves(x, batch.eval())


class _Sine(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).sin()


@pytest.mark.parametrize("training", [True, False])
def test_other_linear_maps_are_left_to_torch(training: bool) -> None:
    torch.manual_seed(0)
    module = BPEARL(dim_pe=4, hidden_dim=8, num_layers=2, num_taps=2)
    for layer in module.phi.layers[1:]:
        layer.linears[0] = _Sine(8, 8, bias=False)
    module.train(training)
    other = copy.deepcopy(module)
    edges = molecule_like(9)
    with torch.no_grad():
        with use_kernels(False):
            expected = other(edges)
        torch.testing.assert_close(module(edges), expected)


def test_norms_of_another_precision_are_left_to_torch() -> None:
    module = BPEARL(dim_pe=4, hidden_dim=8, num_layers=2, num_taps=2).double()
    for layer in module.phi.layers[1:]:
        layer.norms.float()
    other = copy.deepcopy(module)
    with use_kernels(False):
        expected = other(molecule_like(9))
    torch.testing.assert_close(module(molecule_like(9)), expected)
