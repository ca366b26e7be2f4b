r"""The layers of :mod:`.blocked` in compiled code: ``compiled/layer.cpp``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from graphgps_pearl.compiled import LANES, available, call, fields, numbers, pointer, pointers
from graphgps_pearl.pearl.kernels.blocked import Chain
from graphgps_pearl.pearl.norm import first_derivatives_only
from graphgps_pearl.pearl.operators import SparseMatrix
from graphgps_pearl.pearl.rows import PairRows, Rows


def serves(x: Tensor, chain: Chain, eps: Tensor | None) -> bool:
    """Whether the compiled layer takes these widths and there is one."""
    lanes = LANES[x.dtype]
    widths = [weight.size(0) for weight, _ in chain]
    if eps is not None:
        widths.append(x.size(1))
    elif x.requires_grad:
        return False
    return not any(width % lanes for width in widths) and available()


def chained(x: Tensor, chain: Chain, rows: Rows, eps: Tensor | None = None, skip: bool = False) -> Tensor:
    """The layer's output, as :func:`.blocked.chained` gives it."""
    parameters = [tensor for weight, norm in chain for tensor in (weight, norm.weight, norm.bias)]
    return _NativeChain.apply(x, eps, rows, skip, [norm for _, norm in chain], *parameters)


class _NativeChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, eps, rows, skip, norms, *parameters):  # type: ignore[no-untyped-def]
        x = x.contiguous()
        layer = _Call(x, eps, rows, skip, parameters)
        z = [x.new_empty(layer.rows, width) for width in layer.widths[1:]]
        stats, out = x.new_empty(3 * sum(layer.widths[1:])), torch.empty_like(z[-1])
        layer.run(
            "forward",
            norm_eps=numbers([norm.eps for norm in norms], ctypes.c_double),
            momentum=numbers([norm.momentum for norm in norms], ctypes.c_double),
            running_mean=pointers([norm.running_mean for norm in norms]),
            running_var=pointers([norm.running_var for norm in norms]),
            z=pointers(z),
            stats=pointer(stats),
            out=pointer(out),
        )
        ctx.save_for_backward(x, eps, stats, *z, *parameters)
        ctx.rows, ctx.skip, ctx.steps = rows, skip, len(norms)
        return out

    @staticmethod
    @first_derivatives_only
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, eps, stats, *saved = ctx.saved_tensors
        z, parameters = saved[: ctx.steps], saved[ctx.steps :]
        layer = _Call(x, eps, ctx.rows, ctx.skip, parameters)
        # The gradient of the output is g_n; that of h_0 is wanted by the sum over neighbours alone.
        g = [
            x.new_empty(layer.rows, width) if k or eps is not None else None
            for k, width in enumerate(layer.widths[:-1])
        ]
        grad, grad_weights = grad.contiguous(), [torch.empty_like(weight) for weight in layer.weights]
        sums = x.new_zeros(2 * sum(layer.widths[1:]), dtype=torch.float64)
        grad_x = torch.empty_like(x) if eps is not None else None
        grad_eps = x.new_zeros(1, dtype=torch.float64)
        layer.run(
            "backward",
            z=pointers(z),
            stats=pointer(stats),
            grad=pointer(grad),
            g=pointers(g),
            grad_weights=pointers(grad_weights),
            sums=pointer(sums),
            grad_x=pointer(grad_x),
            grad_self=pointer(grad_eps),
        )
        gradients: list[Tensor] = []
        of_norms = sums.to(x.dtype).split([width for width in layer.widths[1:] for _ in range(2)])
        for k, grad_weight in enumerate(grad_weights):
            gradients += [grad_weight, of_norms[2 * k + 1], of_norms[2 * k]]
        return (
            grad_x,
            None if eps is None else grad_eps.to(eps.dtype).view(eps.shape),
            None,
            None,
            None,
            *gradients,
        )


class _Layer(ctypes.Structure):
    """``Layer`` of layer.cpp."""

    _fields_ = fields(
        (ctypes.c_int64, "rows rows_before samples steps skip input_gradient"),
        (ctypes.c_void_p, "widths x crow col value t_crow t_col t_value node first parent weight"),
        (ctypes.c_double, "self total"),
        (ctypes.c_void_p, "norm_eps momentum running_mean running_var weights gamma beta z stats out"),
        (ctypes.c_void_p, "grad g grad_weights sums grad_x grad_self"),
    )


class _Call:
    """What both passes tell the library of a layer; it holds the tensors that are pointed to."""

    def __init__(
        self, x: Tensor, eps: Tensor | None, rows: Rows, skip: bool, parameters: Sequence[Tensor]
    ) -> None:
        self.weights, self.gamma, self.beta = ([t.contiguous() for t in parameters[i::3]] for i in range(3))
        self.widths = [x.size(1), *(weight.size(0) for weight in self.weights)]
        self.x, self.matrix, samples = x, None, 1
        self.rows, self.node, self.first = x.size(0), None, None
        if eps is not None and isinstance(rows, PairRows):  # the matrix of the nodes serves all their pairs
            self.matrix, self.node, self.first = rows.operators.adjacency, rows.node, rows.bounds
        elif eps is not None:
            self.matrix = rows.matrix
            samples = x.size(0) // self.matrix.shape[1]
            self.rows = samples * self.matrix.shape[0]
        multiplicity = rows.multiplicity
        self.weight = None if multiplicity is None else multiplicity.to(x.dtype)
        total = self.rows if multiplicity is None else float(multiplicity.sum(dtype=torch.float64))
        self.parent = None if self.matrix is None else rows.parent
        self.layer = _Layer(
            rows=self.rows,
            rows_before=x.size(0),
            samples=samples,
            steps=len(self.weights),
            skip=skip,
            input_gradient=eps is not None,
            x=pointer(x),
            node=pointer(self.node),
            first=pointer(self.first),
            parent=pointer(self.parent),
            weight=pointer(self.weight),
            self=0.0 if eps is None else 1 + float(eps),
            total=total,
        )

    def run(self, name: str, **more: Any) -> None:
        """Call the library."""
        self._point(self.matrix, "")
        if name == "backward" and self.matrix is not None:
            self._point(self.matrix.t(), "t_")
        more |= {part: pointers(getattr(self, part)) for part in ("weights", "gamma", "beta")}
        more["widths"] = numbers(self.widths, ctypes.c_int64)
        for key, value in more.items():
            setattr(
                self.layer,
                key,
                ctypes.cast(value, ctypes.c_void_p) if isinstance(value, ctypes.Array) else value,
            )
        call(f"layer_{name}", self.x.dtype, self.layer)

    def _point(self, matrix: SparseMatrix | None, prefix: str) -> None:
        if matrix is not None:
            for part in ("crow", "col", "value"):
                setattr(self.layer, prefix + part, pointer(getattr(matrix, part)))
