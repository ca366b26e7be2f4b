"""Linear maps and GINE's messages in compiled code: ``compiled/layer.cpp``.

They serve rows [N, F] on a CPU in float32 and float64. A backward pass that is to be differentiated is in
torch.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from graphgps_pearl.compiled import LANES, available, call, fields, pointer, torch_products_are_slow
from graphgps_pearl.layers.layout import wide_sum

_MAX_THREADS = 2  # torch divides its products among more


def serves_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    """Whether :func:`linear` serves, and is the faster one."""
    if torch.compiler.is_compiling() or not torch_products_are_slow():
        return False
    if bias is not None and (bias.shape != weight.shape[:1] or bias.dtype != weight.dtype):
        return False
    fit = _serve(x, weight) and x.size(1) == weight.size(1) and weight.size(0) % LANES[x.dtype] == 0
    return fit and torch.get_num_threads() <= _MAX_THREADS


def serves_messages(x: Tensor, edge: Tensor, source: Tensor) -> bool:
    """Whether :func:`messages` serves."""
    return _serve(x, edge) and edge.shape == (source.size(0), x.size(1)) and source.dtype == torch.int64


def _serve(*tensors: Tensor) -> bool:
    """Whether these are matrices in one precision, and as wide as compiled code has them."""
    dtype = tensors[0].dtype
    lanes = LANES.get(dtype)
    if lanes is None or torch.compiler.is_compiling():
        return False
    alike = all(t.device.type == "cpu" and t.dtype == dtype and t.dim() == 2 for t in tensors)
    fit = alike and not any(t.size(1) % lanes for t in tensors)
    return fit and tensors[0].numel() > 0 and not torch.is_autocast_enabled("cpu") and available()


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """``torch.nn.functional.linear``."""
    return _LinearMap.apply(x, weight, bias)


def messages(x: Tensor, edge: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """x_v plus the sum of relu(x_u + e_uv) over the edges (u, v)."""
    return _Messages.apply(x, edge, source, target)


class _Linear(ctypes.Structure):
    """``Linear`` of layer.cpp."""

    _fields_ = fields(
        (ctypes.c_int64, "rows in_ out"),
        (ctypes.c_void_p, "x weight bias y grad grad_x grad_weight grad_bias"),
    )


class _LinearMap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):  # type: ignore[no-untyped-def] # torch's signature
        ctx.save_for_backward(x, weight, bias)
        x, weight = x.contiguous(), weight.contiguous()
        bias = None if bias is None else bias.contiguous()
        out = x.new_empty(x.size(0), weight.size(0))
        of_x = pointer(x), pointer(weight), pointer(bias), pointer(out)
        call("linear_forward", x.dtype, _Linear(x.size(0), x.size(1), weight.size(0), *of_x))
        return out

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        x, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled():
            return grad @ weight, grad.t() @ x, None if bias is None else grad.sum(0)
        x, weight, grad = x.contiguous(), weight.contiguous(), grad.contiguous()
        grad_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        grad_weight = torch.empty_like(weight)
        grad_bias = None if bias is None else torch.empty_like(bias)
        gradients = grad_x, grad_weight, grad_bias
        of_x = pointer(x), pointer(weight), None, None, pointer(grad), *map(pointer, gradients)
        call("linear_backward", x.dtype, _Linear(x.size(0), x.size(1), weight.size(0), *of_x))
        return gradients


class _Edges(ctypes.Structure):
    """``Messages`` of layer.cpp."""

    _fields_ = fields(
        (ctypes.c_int64, "nodes edges width"),
        (ctypes.c_void_p, "source target x edge y grad grad_x grad_edge"),
    )


class _Messages(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, edge, source, target):  # type: ignore[no-untyped-def] # torch's signature
        ctx.save_for_backward(x, edge, source, target)
        x, edge, out = x.contiguous(), edge.contiguous(), x.new_empty(x.shape)
        tensors = (source.contiguous(), target.contiguous(), x, edge, out)
        call("messages_forward", x.dtype, _Edges(x.size(0), *edge.shape, *map(pointer, tensors)))
        return out

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        x, edge, source, target = ctx.saved_tensors
        if torch.is_grad_enabled():
            kept = grad.index_select(0, target) * (x.index_select(0, source) + edge > 0)
            return grad + wide_sum(kept, source, x.size(0)), kept, None, None
        x, edge, grad = x.contiguous(), edge.contiguous(), grad.contiguous()
        found = torch.empty_like(x), torch.empty_like(edge)
        tensors = (source.contiguous(), target.contiguous(), x, edge, None, grad, *found)
        call("messages_backward", x.dtype, _Edges(x.size(0), *edge.shape, *map(pointer, tensors)))
        return *found, None, None
