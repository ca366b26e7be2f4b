"""Linear maps and GINE's messages in compiled code equal those in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from graphgps_pearl import compiled
from graphgps_pearl.layers.kernels import compiled_layer
from graphgps_pearl.layers.linear import Linear
from graphgps_pearl.layers.local import GINE
from graphgps_pearl.switches import use_kernels

pytestmark = pytest.mark.skipif(compiled.library() is None, reason="no C++ compiler")

DTYPES = [(torch.float64, 1e-12), (torch.float32, 1e-4)]


@pytest.fixture
def slow_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor on which torch's products are the slower ones."""
    monkeypatch.setattr(compiled_layer, "torch_products_are_slow", lambda: True)


def assert_same(
    ours: Callable[..., Tensor], plain: Callable[..., Tensor], inputs: list[Any], tol: float
) -> None:
    """Values and gradients of every input that has one."""
    wanted = [t for t in inputs if isinstance(t, Tensor) and t.requires_grad]
    results = []
    for function in (ours, plain):
        out = function(*inputs)
        results.append([out, *torch.autograd.grad(out.sin().sum(), wanted)])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=tol, atol=tol)


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("rows", [1, 5, 60, 187])
@pytest.mark.parametrize(("width", "out"), [(8, 16), (64, 192), (40, 24), (128, 8)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(dtype: torch.dtype, tolerance: float, rows: int, width: int, out: int, bias: bool) -> None:
    torch.manual_seed(0)
    x, weight, shift = (
        torch.randn(shape, dtype=dtype, requires_grad=True) for shape in ((rows, width), (out, width), (out,))
    )
    assert_same(compiled_layer.linear, F.linear, [x, weight, shift if bias else None], tolerance)
    data = x.detach()  # without a gradient of its own
    assert_same(compiled_layer.linear, F.linear, [data, weight, shift if bias else None], tolerance)


def test_linear_of_views() -> None:
    torch.manual_seed(0)
    x = torch.randn(16, 30, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(16, 24, dtype=torch.float64, requires_grad=True)
    shift = torch.randn(48, dtype=torch.float64, requires_grad=True)
    assert_same(
        lambda x, w, b: compiled_layer.linear(x.t(), w.t(), b[::2]),
        lambda x, w, b: F.linear(x.t(), w.t(), b[::2]),
        [x, weight, shift],
        1e-12,
    )


def edges(nodes: int, count: int) -> tuple[Tensor, Tensor]:
    return torch.randint(nodes, (count,)), torch.randint(nodes, (count,))


def plain_messages(x: Tensor, edge: Tensor, source: Tensor, target: Tensor) -> Tensor:
    return x.index_add(0, target, (x[source] + edge).relu())


@pytest.mark.parametrize(("dtype", "tolerance"), DTYPES)
@pytest.mark.parametrize("width", [8, 16, 24, 64])
@pytest.mark.parametrize("count", [0, 1, 90])
def test_messages(dtype: torch.dtype, tolerance: float, width: int, count: int) -> None:
    torch.manual_seed(0)
    source, target = edges(20, count)
    x, edge = (torch.randn(n, width, dtype=dtype, requires_grad=True) for n in (20, count))
    assert_same(compiled_layer.messages, plain_messages, [x, edge, source, target], tolerance)


def test_nan_is_passed_on() -> None:
    x, edge = torch.zeros(3, 8), torch.zeros(1, 8)
    x[0, 2] = torch.nan
    out = compiled_layer.messages(x, edge, torch.tensor([0]), torch.tensor([1]))
    assert out[1, 2].isnan() and out[1, :2].eq(0).all() and out[2].eq(0).all()


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("node", [3, -1])
def test_an_edge_to_nowhere_is_an_error(end: int, node: int) -> None:
    index = torch.zeros(2, 4, dtype=torch.long)
    index[end, 2] = node
    with pytest.raises(IndexError, match="messages_forward was given an index that is out of range"):
        compiled_layer.messages(torch.zeros(3, 8), torch.zeros(4, 8), *index)


def test_second_derivatives_are_those_of_torch() -> None:
    torch.manual_seed(0)
    source, target = edges(6, 14)
    shapes = ((6, 8), (14, 8), (16, 8), (16,))
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    def ours(x: Tensor, edge: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return compiled_layer.linear(compiled_layer.messages(x, edge, source, target), weight, bias).tanh()

    def plain(x: Tensor, edge: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.linear(plain_messages(x, edge, source, target), weight, bias).tanh()

    found = []
    for function in (ours, plain):
        first = torch.autograd.grad(function(*inputs).sum(), inputs, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), inputs))
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_who_is_served(slow_products: None, monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight = torch.randn(4, 16), torch.randn(8, 16)
    long, edge = torch.zeros(5, dtype=torch.long), torch.randn(5, 16)
    with use_kernels(True):
        assert compiled_layer.serves_linear(x, weight, None)
        assert not compiled_layer.serves_linear(x, torch.randn(3, 16), None)
        assert not compiled_layer.serves_linear(torch.randn(4, 12), torch.randn(8, 12), None)
        assert not compiled_layer.serves_linear(x[None], weight, None)
        assert not compiled_layer.serves_linear(x[:0], weight, None)
        assert not compiled_layer.serves_linear(x.double(), weight, None)
        assert not compiled_layer.serves_linear(x.bfloat16(), weight.bfloat16(), None)
        with torch.autocast("cpu"):
            assert not compiled_layer.serves_linear(x, weight, None)
        assert compiled_layer.serves_linear(x, weight, torch.zeros(8))
        for bias in (torch.zeros(16), torch.zeros(8).double()):
            assert not compiled_layer.serves_linear(x, weight, bias)
        assert not compiled_layer.serves_linear(x, torch.randn(8, 24), None)
        assert compiled_layer.serves_messages(x, edge, long)
        assert not compiled_layer.serves_messages(x, edge[:3], long)
        assert not compiled_layer.serves_messages(x, edge, long.int())
        assert not compiled_layer.serves_messages(x, torch.randn(5, 8), long)
        monkeypatch.setattr(compiled_layer, "torch_products_are_slow", lambda: False)
        assert not compiled_layer.serves_linear(x, weight, None) and compiled_layer.serves_messages(
            x, edge, long
        )
    with use_kernels(False):
        assert not compiled_layer.serves_messages(x, edge, long)


def test_modules_take_the_kernels(slow_products: None, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    for name in ("linear", "messages"):
        function = getattr(compiled_layer, name)
        monkeypatch.setattr(compiled_layer, name, lambda *a, f=function, n=name: used.append(n) or f(*a))
    torch.manual_seed(0)
    conv = GINE(Linear(16, 16).double())
    source, target = edges(6, 14)
    x, edge = torch.randn(6, 16).double(), torch.randn(14, 16).double()
    results = []
    for enabled in (True, False):
        with use_kernels(enabled):
            results.append(conv(x, torch.stack([source, target]), edge))
    assert used == ["messages", "linear"]
    torch.testing.assert_close(*results, rtol=1e-12, atol=1e-12)


def test_where_products_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    amd = "vendor_id : AuthenticAMD\nflags : fpu avx2{}\n"
    intel = "vendor_id : GenuineIntel\nflags : fpu avx2 avx512f\n"
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    for text, expected in (
        (amd.format(" avx512f"), True),
        (amd.format(""), False),
        (intel, False),
        ("", False),
    ):
        monkeypatch.setattr(compiled, "_processor", lambda text=text: text)
        compiled.torch_products_are_slow.cache_clear()
        assert compiled.torch_products_are_slow() is expected
    monkeypatch.undo()
    compiled.torch_products_are_slow.cache_clear()
