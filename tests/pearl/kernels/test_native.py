"""The compiled layer equals the plain one: values, gradients, running statistics."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable

import pytest
import torch
from helpers.graphs import batch_of, molecule_like
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from graphgps_pearl.compiled import library
from graphgps_pearl.pearl import BPEARL, RPEARL, TapLayer
from graphgps_pearl.pearl.hooks import apply_layer
from graphgps_pearl.pearl.kernels import native
from graphgps_pearl.pearl.norm import BatchNorm
from graphgps_pearl.switches import use_kernels

pytestmark = pytest.mark.skipif(library() is None, reason="no C++ compiler")

ENCODINGS: dict[str, Callable[[], nn.Module]] = {
    "pairs": lambda: BPEARL(5, quotient=False, num_taps=5, gso="random_walk", **WIDE),
    "merged pairs": lambda: BPEARL(5, quotient=True, num_taps=2, **WIDE),
    "samples": lambda: RPEARL(5, num_samples=3, num_taps=3, **WIDE),
    "no taps": lambda: BPEARL(5, quotient=False, num_taps=0, **WIDE),
    "other vectors": lambda: BPEARL(
        5, hidden_dim=8, mlp_hidden=12, mlp_layers=3, num_taps=4, pool="self+max"
    ),
    "long vectors": lambda: BPEARL(5, hidden_dim=80, mlp_hidden=112, num_layers=2, num_taps=9),
    "no skip": lambda: BPEARL(5, hidden_dim=16, num_layers=2, skip="none", mlp_layers=1),
    "sum of all": lambda: BPEARL(5, hidden_dim=16, num_layers=2, skip="sum", quotient=True),
}
WIDE = {"num_layers": 3, "mlp_layers": 2, "mlp_hidden": 32, "hidden_dim": 16}


def stirred(module: nn.Module) -> nn.Module:
    """Norms and epsilons away from where they start; one norm's weight of each sign, and zero."""
    generator = torch.Generator().manual_seed(1)
    for name, parameter in module.named_parameters():
        if parameter.dim() == 1:
            parameter.data += 0.5 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            if name.endswith("norms.0.weight"):
                parameter.data[:2] = torch.tensor([0.0, -0.7])
    return module


def everything(module: nn.Module, compiled: bool | None) -> tuple[list[Tensor], int]:
    """Outputs, gradients and buffers of a copy, and how many layers were compiled ones; None: no kernels."""
    module, calls = copy.deepcopy(module), []
    dtype = next(module.parameters()).dtype
    batch = batch_of(*((molecule_like(n, seed=n), n) for n in (9, 14, 1, 11)))
    torch.manual_seed(5)
    with pytest.MonkeyPatch.context() as patch, use_kernels(compiled is not None, compiled is True):
        run = native.run
        patch.setattr(native, "run", lambda x, parts: (calls.extend(parts), run(x, parts))[1])
        out = module(batch)
    direction = torch.randn(out.shape, generator=torch.Generator().manual_seed(3), dtype=dtype)
    gradients = torch.autograd.grad((out * direction).sum(), list(module.parameters()))
    return [out, *gradients, *module.buffers()], len(calls)


@pytest.mark.parametrize("name", ENCODINGS)
def test_the_encoding_is_the_same(name: str) -> None:
    torch.manual_seed(0)
    module = stirred(ENCODINGS[name]().double())
    found, calls = everything(module, compiled=True)
    assert calls >= len(module.phi.layers) - (name == "no taps")
    for compiled in (False, None):
        expected, other_calls = everything(module, compiled)
        assert other_calls == 0
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norms_train", [False, True])
@pytest.mark.parametrize("name", [*ENCODINGS, "graph norm"])
def test_the_encoding_is_the_same_without_gradients(
    name: str, norms_train: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In evaluation, and where the norms' statistics are re-estimated."""
    torch.manual_seed(0)
    encoding = (ENCODINGS | {"graph norm": lambda: RPEARL(5, num_samples=3, norm="graph", **WIDE)})[name]
    module = stirred(encoding().double()).eval()
    generator = torch.Generator().manual_seed(2)
    for norm in (part for part in module.modules() if isinstance(part, BatchNorm)):
        norm.running_mean += torch.randn(norm.dim, generator=generator, dtype=torch.float64)
        norm.running_var += torch.rand(norm.dim, generator=generator, dtype=torch.float64)
        norm.train(norms_train)
    batch = batch_of(*((molecule_like(n, seed=n), n) for n in (9, 14, 1, 11)))
    results, calls, run = [], [], native._without_gradients
    monkeypatch.setattr(native, "_without_gradients", lambda *words: (calls.extend(words[2]), run(*words))[1])
    for compiled in (True, False):
        same = copy.deepcopy(module)
        with use_kernels(compiled), torch.no_grad():
            results.append([same(batch), *same.buffers()])
    expected = len(module.phi.layers) - (name == "no taps") - (name == "graph norm" and norms_train)
    assert len(calls) >= expected
    for fast, plain in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-9)


class Given:
    """Rows whose taps are given."""

    multiplicity = parent = None

    def __init__(self, taps: Tensor) -> None:
        self.given = taps

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        return self.given.to(x.dtype)


@pytest.mark.parametrize("shift", [0.0, 30.0, 300.0])
def test_float32_is_as_good_as_plain_float32(shift: float) -> None:
    """Also where the mean of a norm's input is far from zero."""
    torch.manual_seed(0)
    layer, x = TapLayer(1, 32, num_taps=4, norm="batch").train(), torch.randn(5000, 1)
    rows, results = Given(torch.randn(5000, 4, 1) + shift), []
    for dtype, compiled in ((torch.float64, False), (torch.float32, False), (torch.float32, True)):
        same = copy.deepcopy(layer).to(dtype)
        with use_kernels(compiled):
            out = apply_layer(same, x.to(dtype), rows, residual=False)
        gradients = torch.autograd.grad(out.square().sum(), list(same.parameters()))
        results.append([out.detach(), *gradients, *same.buffers()])
    for exact, plain, found in zip(*results, strict=True):
        errors = [float((a - exact).abs().max() / exact.abs().max()) for a in (plain, found)]
        assert errors[1] <= 2 * errors[0] + 1e-5


def test_nan_reaches_the_output() -> None:
    layer = TapLayer(1, 16, num_taps=1, norm="batch").train()
    x = torch.randn(50, 1)
    x[7] = torch.nan

    with use_kernels(True):
        assert apply_layer(layer, x, Given(x.unsqueeze(1)), residual=False).isnan().all()


def test_directed_weighted_edges() -> None:
    """The transpose is another matrix than the one of the forward pass."""
    torch.manual_seed(0)
    edge_index = torch.tensor([[0, 1, 2, 2, 4], [1, 2, 0, 3, 3]])
    module = stirred(BPEARL(5, quotient=False, num_taps=3, **WIDE).double())
    results = []
    for compiled in (True, False):
        same = copy.deepcopy(module)
        with use_kernels(True, compiled):
            out = same(edge_index, num_nodes=5, edge_weight=torch.tensor([1.0, 0.5, 2.0, 3.0, 0.1]))
        results.append([out, *torch.autograd.grad(out.sin().sum(), list(same.parameters()))])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_what_does_not_fit_is_left_to_torch() -> None:
    narrow = BPEARL(5, hidden_dim=6, num_layers=1)
    assert everything(narrow, compiled=True)[1] == 0
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(8)
        assert everything(BPEARL(5, hidden_dim=16, num_layers=1), compiled=True)[1] == 0
    finally:
        torch.set_num_threads(threads)


def test_gradients_where_saved_tensors_were_moved_or_are_used_twice() -> None:
    """The backward pass takes the addresses of the forward pass only where the tensors are still there."""
    torch.manual_seed(0)
    module = BPEARL(4, hidden_dim=16, num_layers=2, num_taps=3, quotient=False).double()
    batch, parameters = batch_of((molecule_like(9), 9)), list(module.parameters())
    expected = torch.autograd.grad(module(batch).square().sum(), parameters)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t.clone()):
        moved = torch.autograd.grad(module(batch).square().sum(), parameters)
    loss = module(batch).square().sum()
    first = torch.autograd.grad(loss, parameters, retain_graph=True)
    second = torch.autograd.grad(loss, parameters)
    for found in (moved, first, second):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_nothing_is_held_after_the_backward_pass() -> None:
    """Not by a loss that a user keeps, and not by a checkpointed pass before its backward pass."""
    pe = BPEARL(5, quotient=False, num_taps=4, **WIDE)
    batch = batch_of((molecule_like(40), 40))

    def held(keep: Callable[[], Tensor]) -> int:
        """Tensors with the width of a layer and a row for every pair."""
        kept = keep()
        assert kept.requires_grad
        gc.collect()
        found = [o for o in gc.get_objects() if type(o) is Tensor and o.layout is torch.strided]
        return sum(t.dim() == 2 and t.size(0) == 40 * 40 and t.size(1) > 1 for t in found)

    def after_backward() -> Tensor:
        loss = pe(batch).sum()
        loss.backward()
        return loss

    with use_kernels(True):
        pe(batch).sum().backward()  # the parameters have gradients
        assert held(after_backward) == 0
        assert held(lambda: checkpoint(pe, batch, use_reentrant=False).sum()) == 0
