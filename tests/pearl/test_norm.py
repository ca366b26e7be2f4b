"""Normalisation of rows: against PyTorch's, against rows written out, and in float32 against float64."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
from helpers.graphs import batch_of, molecule_like
from torch import Tensor, nn

from graphgps_pearl.compiled import library
from graphgps_pearl.pearl import BPEARL
from graphgps_pearl.pearl.norm import BatchNorm, GraphNorm, LayerNorm
from graphgps_pearl.switches import use_kernels


@dataclass
class SomeRows:
    """Rows of which only the normalisation matters."""

    multiplicity: Tensor | None = None
    graph: Tensor | None = None

    @property
    def num_graphs(self) -> int:
        assert self.graph is not None
        return int(self.graph.max()) + 1


def perturbed(norm: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(1)
    for parameter in norm.parameters():
        parameter.data += torch.rand(parameter.shape, generator=generator, dtype=parameter.dtype)
    return norm


def rows(n: int, dim: int = 4, seed: int = 0) -> Tensor:
    x = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (3 * x + 5).requires_grad_()


def test_equals_pytorchs_batch_norm() -> None:
    ours, theirs = perturbed(BatchNorm(4).double()), perturbed(nn.BatchNorm1d(4).double())
    for step in range(3):
        x, direction = rows(20_000, seed=step), rows(20_000, seed=9).detach()
        outputs = [norm(x) for norm in (ours, theirs)]
        torch.testing.assert_close(*outputs, rtol=1e-10, atol=1e-10)
        gradients = [
            torch.autograd.grad((y * direction).sum(), [x, *norm.parameters()])
            for y, norm in zip(outputs, (ours, theirs), strict=True)
        ]
        for a, b in zip(*gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize("kind", [BatchNorm, GraphNorm])
def test_multiplicities_equal_rows_written_out(kind: type[BatchNorm]) -> None:
    weight = torch.tensor([1, 3, 2, 1, 5, 1, 1, 4])
    graph = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])
    short, long = perturbed(kind(4).double()), perturbed(kind(4).double())
    x, direction = rows(8), rows(8, seed=3).detach()
    which = torch.arange(8).repeat_interleave(weight)

    y = short(x, SomeRows(weight, graph))
    y_long = long(x[which], SomeRows(None, graph[which]))
    torch.testing.assert_close(y[which], y_long)
    torch.testing.assert_close(short.running_mean, long.running_mean)
    torch.testing.assert_close(short.running_var, long.running_var)
    a = torch.autograd.grad((y * weight[:, None] * direction).sum(), [x, *short.parameters()])
    b = torch.autograd.grad((y_long * direction[which]).sum(), [x, *long.parameters()])
    for first, second in zip(a, b, strict=True):
        torch.testing.assert_close(first, second)


def test_gradients_by_finite_differences() -> None:
    norm, weight = perturbed(BatchNorm(3).double()), torch.tensor([1.0, 2.0, 3.0, 1.0, 1.0])
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: norm(x, SomeRows(weight)), x)


def test_graph_norm_takes_the_graphs_one_after_the_other() -> None:
    """As the authors' code does: each graph by itself, one step of the running statistics for each."""
    ours, theirs = perturbed(GraphNorm(4).double()), perturbed(nn.BatchNorm1d(4).double())
    x, graph = rows(12), torch.tensor([0] * 5 + [1] * 3 + [3] * 4)  # graph 2 has no rows
    expected = torch.cat([theirs(x[graph == g]) for g in (0, 1, 3)])
    torch.testing.assert_close(ours(x, SomeRows(graph=graph)), expected)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    torch.testing.assert_close(ours.eval()(x, SomeRows(graph=graph)), theirs.eval()(x))


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_for_a_variance(n: int) -> None:
    norm = perturbed(BatchNorm(4).double())
    y = norm(rows(n))
    torch.testing.assert_close(y, norm.bias.expand(n, 4))
    assert torch.equal(norm.running_var, torch.ones(4, dtype=torch.float64))
    y.sum().backward()


def test_layer_norm_of_one_column_is_refused() -> None:
    with pytest.raises(ValueError, match="width of at least 2"):
        LayerNorm(1)


class PyTorchNorm(nn.BatchNorm1d):
    """PyTorch's batch norm in the place of ours."""

    def forward(self, x: Tensor, rows: object = None) -> Tensor:
        return super().forward(x)


@pytest.mark.parametrize("path", ["plain", "kernels in torch", "compiled"])
def test_accuracy_in_float32(path: str) -> None:
    """In float32 gradients are within 0.02% of a float64 run; with PyTorch's norm they are not."""
    if path == "compiled" and library() is None:
        pytest.skip("no C++ compiler")
    data = batch_of(*[(molecule_like(n), n) for n in (60, 80, 100)])
    torch.manual_seed(0)
    single = BPEARL(dim_pe=4, hidden_dim=16, num_layers=6)
    double, plain = copy.deepcopy(single).double(), copy.deepcopy(single)
    plain.quotient = False  # PyTorch's norm knows no multiplicities
    for module in list(plain.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, BatchNorm):
                module.register_module(name, PyTorchNorm(child.dim))
    gradients, outputs = [], []
    for module in (single, plain, double):
        with use_kernels(path != "plain", native=path == "compiled"):
            output = module(data.edge_index, data.batch)
            output.square().sum().backward()
        outputs.append(output.detach())
        gradients.append(torch.cat([p.grad.flatten().double() for p in module.parameters()]))
    assert relative(outputs[0], outputs[2]) < 1e-4
    assert relative(gradients[0], gradients[2]) < 2e-4
    factor = 3 if path == "kernels in torch" else 10
    assert relative(gradients[1], gradients[2]) > factor * relative(gradients[0], gradients[2])


def relative(a: Tensor, b: Tensor) -> float:
    return float((a.double() - b).norm() / b.norm())


def normalised(dtype: torch.dtype, weighted: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    norm = BatchNorm(5).to(torch.promote_types(dtype, torch.float32))
    norm.weight.data, norm.bias.data = norm.weight * 0.7, norm.bias + torch.linspace(-1, 1, 5).to(norm.bias)
    x = (torch.randn(5000, 5) * 3 + 7).to(dtype).requires_grad_()
    rows = SimpleNamespace(multiplicity=torch.randint(1, 50, (5000,)) if weighted else None)
    y = torch.relu(norm(x, rows))
    y.sin().sum().backward()
    return [y, x.grad, norm.weight.grad, norm.bias.grad, norm.running_mean, norm.running_var]


@pytest.mark.parametrize("weighted", [False, True])
def test_single_precision_is_close_to_double(weighted: bool) -> None:
    single, double = (normalised(dtype, weighted) for dtype in (torch.float32, torch.float64))
    for a, b in zip(single, double, strict=True):
        assert float((a.double() - b).detach().norm() / b.detach().norm()) < 1e-4


def test_mean_far_from_zero_costs_no_digits() -> None:
    """The variance of x + 10^4 is that of x, as far as float32 holds it."""
    torch.manual_seed(0)
    x = torch.randn(20_000, 3)
    norms = [BatchNorm(3), BatchNorm(3)]
    for norm, shifted in zip(norms, (x + 1e4, (x + 1e4).double() - 1e4), strict=True):
        norm(shifted.float())
    torch.testing.assert_close(norms[0].running_var, norms[1].running_var, rtol=1e-5, atol=0)


def test_half_precision_keeps_its_dtype() -> None:
    y, grad, *_ = normalised(torch.bfloat16, True)
    assert y.dtype == grad.dtype == torch.bfloat16


@pytest.mark.parametrize("kernels", [False, True])
def test_running_statistics_in_double_precision_are_pytorchs(kernels: bool) -> None:
    torch.manual_seed(0)
    module = BPEARL(dim_pe=4, hidden_dim=8, num_layers=1, num_taps=2, quotient=False).double()
    rows_of, theirs = [], nn.BatchNorm1d(8).double()
    with use_kernels(False), torch.no_grad():
        handle = module.phi.layers[0].norm.register_forward_pre_hook(lambda _, x: rows_of.append(x[0]))
        copy.deepcopy(module)(molecule_like(9))
        handle.remove()
    theirs(rows_of[0])
    with use_kernels(kernels):
        module(molecule_like(9))
    ours = module.phi.layers[0].norm
    torch.testing.assert_close(ours.running_mean, theirs.running_mean, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(ours.running_var, theirs.running_var, rtol=1e-13, atol=1e-14)
