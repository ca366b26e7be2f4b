"""Attention with dropout in compiled code: ``compiled/attention.cpp``.

It takes the random bits that :mod:`.attention` takes, in the same order, so that the two give the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphgps_pearl.compiled import LANES, available, buffer, call, fields, filled, numbers, pointers
from graphgps_pearl.layers.grouping import DensePairs, Grouping
from graphgps_pearl.layers.kernels.dropout import STEPS, draw
from graphgps_pearl.pearl.norm import first_derivatives_only

SECOND_DERIVATIVES = (
    "the kernel of attention with dropout has no second derivatives; set gt.attn_dropout 0, or "
    "switch kernels off (GRAPHGPS_PEARL_KERNELS=0)"
)
_LONGEST = 16  # numbers in the longest vector: rows of scores are rounded up to whole vectors


def serves(qkv: Tensor, heads: int, grouping: Grouping, bias: Sequence[Tensor | None]) -> bool:
    """Whether the compiled attention takes these."""
    lanes = LANES.get(qkv.dtype)
    if qkv.device.type != "cpu" or lanes is None or qkv.size(1) // (3 * heads) % lanes:
        return False
    if isinstance(bias, DensePairs):
        fits = bias.whole.dtype == qkv.dtype and bias.whole.is_contiguous()
    else:
        fits = all(
            b is None or (b.dtype == qkv.dtype and b.stride(-1) == 1 and b.size(-1) == group.size)
            for b, group in zip(bias, grouping.groups, strict=True)
        )
    return fits and not torch.is_autocast_enabled("cpu") and available()


def attend(
    qkv: Tensor, heads: int, grouping: Grouping, bias: Sequence[Tensor | None], dropout: float
) -> Tensor:
    """:func:`graphgps_pearl.layers.attention.attend` for ``dropout`` > 0; no second derivatives."""
    if isinstance(bias, DensePairs):
        return _Attention.apply(qkv, heads, grouping, dropout, True, bias.whole)
    return _Attention.apply(qkv, heads, grouping, dropout, False, *bias)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv, heads, grouping, dropout, joined, *bias):  # type: ignore[no-untyped-def] # torch's signature
        shapes = [(group.graphs.numel(), heads, group.size, group.size) for group in grouping.groups]
        drawn = [draw(torch.Size(shape), dropout, qkv.device) for shape in shapes]
        bits, dropped = [part for part, _ in drawn], drawn[0][1]
        qkv, out = qkv.contiguous(), qkv.new_empty(qkv.size(0), qkv.size(1) // 3)
        weights = buffer(qkv, heads, _scores(grouping))
        parts = DensePairs(bias[0], grouping.groups) if joined else bias
        wide = [None if b is None else b.expand(shape) for b, shape in zip(parts, shapes, strict=True)]
        _call("forward", qkv, heads, grouping, dropped, bits, weights, bias=wide, out=out)
        ctx.save_for_backward(qkv, weights, *bits)
        ctx.heads, ctx.grouping, ctx.dropped, ctx.shapes = heads, grouping, dropped, shapes
        ctx.joined = joined
        ctx.bias_shapes = [None if b is None else b.shape for b in bias]
        return out

    @staticmethod
    @first_derivatives_only(SECOND_DERIVATIVES)
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        qkv, weights, *bits = ctx.saved_tensors
        grad_qkv = torch.empty_like(qkv)
        wanted, groups = ctx.needs_input_grad[5:], ctx.grouping.groups
        shapes = ctx.bias_shapes if ctx.joined else ctx.shapes
        grad_bias = [
            grad.new_zeros(shape) if want else None for shape, want in zip(shapes, wanted, strict=True)
        ]
        _call(
            *("backward", qkv, ctx.heads, ctx.grouping, ctx.dropped, bits, weights),
            grad_bias=DensePairs(grad_bias[0], groups) if ctx.joined and wanted[0] else grad_bias,
            grad=grad.contiguous(),
            grad_qkv=grad_qkv,
        )
        sums = zip(grad_bias, ctx.bias_shapes, strict=True)
        of_bias = (None if g is None else g.sum_to_size(shape) for g, shape in sums)
        return grad_qkv, None, None, None, None, *of_bias


class _Fields(ctypes.Structure):
    """``Attention`` of attention.cpp."""

    _fields_ = fields(
        (ctypes.c_int64, "groups heads dim dropped"),
        (ctypes.c_double, "scale share"),
        (ctypes.c_void_p, "graphs padded first size bits bias strides qkv weights out"),
        (ctypes.c_void_p, "grad grad_qkv grad_bias"),
    )


def _call(
    name: str,
    qkv: Tensor,
    heads: int,
    grouping: Grouping,
    dropped: int,
    bits: Sequence[Tensor],
    weights: Tensor,
    bias: Sequence[Tensor | None] = (),
    grad_bias: Sequence[Tensor | None] = (),
    **tensors: Tensor,
) -> None:
    """Call the library."""
    groups, dim = grouping.groups, qkv.size(1) // 3
    nothing = [None] * len(groups)
    bias, of_grad = bias or nothing, any(g is not None for g in grad_bias)
    strides = [step for b in (grad_bias if of_grad else bias) for step in _strides(b)]
    arrays: dict[str, Any] = {
        "graphs": numbers([group.graphs.numel() for group in groups], ctypes.c_int64),
        "padded": numbers([group.size for group in groups], ctypes.c_int64),
        "first": pointers([_first(grouping, i) for i in range(len(groups))]),
        "size": pointers([_size(grouping, i) for i in range(len(groups))]),
        "bits": pointers(bits),
        "bias": pointers(bias),
        "strides": numbers(strides, ctypes.c_int64),
    }
    if of_grad:
        arrays["grad_bias"] = pointers(grad_bias)
    structure = filled(
        _Fields,
        {"qkv": qkv, "weights": weights, **tensors},
        arrays,
        groups=len(groups),
        heads=heads,
        dim=dim,
        dropped=dropped - STEPS // 2,
        scale=(dim // heads) ** -0.5,
        share=1 - dropped / STEPS,
    )
    call(f"attention_{name}", qkv.dtype, structure)


def _strides(bias: Tensor | None) -> Sequence[int]:
    """By graph, head and query."""
    return (0, 0, 0) if bias is None else bias.stride()[:3]


def _first(grouping: Grouping, number: int) -> Tensor:
    """The first node of each graph of a group."""
    group = grouping.groups[number]
    return grouping.cached(("first", number), lambda: group.nodes.view(-1, group.size)[:, 0].contiguous())


def _size(grouping: Grouping, number: int) -> Tensor:
    """The number of nodes of each graph of a group."""
    group = grouping.groups[number]

    def compute() -> Tensor:
        if group.mask is None:
            return torch.full_like(group.graphs, group.size)
        return group.mask.flatten(1).sum(dim=1)

    return grouping.cached(("size", number), compute)


def _scores(grouping: Grouping) -> int:
    """Numbers to keep for each head: every graph's n rows of n scores, rounded up to whole vectors."""

    def compute() -> Tensor:
        sizes = torch.cat([_size(grouping, number) for number in range(len(grouping.groups))])
        return (sizes * ((sizes + _LONGEST - 1) // _LONGEST * _LONGEST)).sum()

    return int(grouping.cached("scores", compute))
