"""The projection of pairs to attention biases in compiled code: ``compiled/pairs.cpp``."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from graphgps_pearl.compiled import LANES, available, buffer, call, fields, filled, numbers, pointers
from graphgps_pearl.pearl.norm import first_derivatives_only

if TYPE_CHECKING:
    from graphgps_pearl.layers.pair_bias import PairIndex

SECOND_DERIVATIVES = (
    "the kernel of B-PEARL's attention bias has no second derivatives; switch kernels off "
    "(GRAPHGPS_PEARL_KERNELS=0)"
)


def serves(rows: Tensor, weight: Tensor) -> bool:
    """Whether the compiled projection takes these."""
    lanes = LANES.get(rows.dtype)
    if rows.device.type != "cpu" or lanes is None or rows.size(1) % lanes or weight.size(1) % lanes:
        return False
    return weight.dtype == rows.dtype and not torch.is_autocast_enabled("cpu") and available()


def project(
    rows: Tensor,
    weight: Tensor,
    constant: Tensor | None,
    index: PairIndex,
    layers: int,
    masked: bool = True,
) -> Sequence[Tensor]:
    """:func:`graphgps_pearl.layers.pair_bias.project`, [C / layers, D] for each layer."""
    return _Project.apply(rows, weight, constant, index, layers, masked)


class _Project(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, weight, constant, index, layers, masked):  # type: ignore[no-untyped-def] # torch's signature
        rows, weight = rows.contiguous(), weight.contiguous()
        constant = None if constant is None else constant.contiguous()
        out = [buffer(rows, weight.size(1) // layers, index.num_dense) for _ in range(layers)]
        padding = -math.inf if masked else 0.0
        _call("forward", rows, weight, index, out, padding, constant=constant)
        ctx.save_for_backward(rows, weight)
        ctx.index = index
        return tuple(out)

    @staticmethod
    @first_derivatives_only(SECOND_DERIVATIVES)
    def backward(ctx, *grads):  # type: ignore[no-untyped-def] # torch's signature
        rows, weight = ctx.saved_tensors
        grad_rows, grad_weight = torch.zeros_like(rows), torch.zeros_like(weight)
        wanted = ctx.needs_input_grad[2]
        grad_constant = rows.new_zeros(weight.size(1), dtype=torch.float64) if wanted else None
        _call(
            *("backward", rows, weight, ctx.index, [grad.contiguous() for grad in grads]),
            transposed=weight.t().contiguous(),
            grad_rows=grad_rows,
            grad_weight=grad_weight,
            grad_constant=grad_constant,
        )
        grad_constant = None if grad_constant is None else grad_constant.to(rows.dtype)
        return grad_rows, grad_weight, grad_constant, None, None, None


class _Fields(ctypes.Structure):
    """``Pairs`` of pairs.cpp."""

    _fields_ = fields(
        (ctypes.c_int64, "groups width columns heads dense"),
        (ctypes.c_void_p, "graphs padded size start row rows weight constant"),
        (ctypes.c_double, "padding"),
        (ctypes.c_void_p, "layers transposed grad_rows grad_weight grad_constant"),
    )


def _call(
    name: str,
    rows: Tensor,
    weight: Tensor,
    index: PairIndex,
    layers: Sequence[Tensor],
    padding: float = 0.0,
    **tensors: Tensor | None,
) -> None:
    groups = index.groups
    arrays: dict[str, Any] = {
        "graphs": numbers([group.graphs.numel() for group in groups], ctypes.c_int64),
        "padded": numbers([group.size for group in groups], ctypes.c_int64),
        "size": pointers(index.sizes),
        "start": pointers(index.starts),
        "layers": pointers(layers),
    }
    structure = filled(
        _Fields,
        {"row": index.pair_row, "rows": rows, "weight": weight, **tensors},
        arrays,
        groups=len(groups),
        width=rows.size(1),
        columns=weight.size(1),
        heads=weight.size(1) // len(layers),
        dense=index.num_dense,
        padding=padding,
    )
    call(f"pairs_{name}", rows.dtype, structure)
