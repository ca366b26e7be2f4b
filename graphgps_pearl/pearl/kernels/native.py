r"""The layers of :mod:`.blocked` in compiled code, all of :math:`\Phi` in one call: ``compiled/phi.cpp``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import accumulate, cycle
from typing import Any

import torch
from torch import Tensor

from graphgps_pearl.compiled import LANES, available, buffer, call, fields, numbers, pointer, pointers
from graphgps_pearl.pearl.kernels.blocked import Part
from graphgps_pearl.pearl.norm import first_derivatives_of_norms
from graphgps_pearl.pearl.operators import SparseMatrix
from graphgps_pearl.pearl.rows import PairRows, Rows, SampleRows


def serves(x: Tensor, parts: Sequence[Part]) -> bool:
    """Whether compiled code takes these widths, and there is some; ``x`` is what the first layer is given."""
    lanes = LANES[x.dtype]
    widths = [weight.size(0) for part in parts for weight, _ in part.chain]
    if parts[0].eps is not None:
        widths.append(x.size(1))
    elif x.requires_grad:
        return False
    return not any(width % lanes for width in widths) and available()


def run(x: Tensor, parts: Sequence[Part]) -> Tensor:
    """The output of the last layer, as :func:`.blocked.run` gives it."""
    if not torch.is_grad_enabled():
        return _without_gradients("forward", x, parts)
    parameters = [tensor for part in parts for tensor in (part.eps, *part.parameters)]
    return _Native.apply(x, parts, *parameters)


def evaluate(x: Tensor, parts: Sequence[Part]) -> Tensor:
    """The output of the last layer with the norms' running statistics, without gradients."""
    return _without_gradients("evaluate", x, parts)


def _without_gradients(name: str, x: Tensor, parts: Sequence[Part]) -> Tensor:
    """The output alone. Training fills two buffers in turn for the next step or layer, evaluation none."""
    x = x.contiguous()
    layers = _shapes(x, parts)
    stored: list[Tensor | None] = [None] * sum(len(layer.widths) + 1 for layer in layers)
    if name == "forward":
        stored = _alternating(x, layers)
    stored[-1] = out = buffer(x, layers[-1].rows, layers[-1].widths[-1])
    _Call(x, parts, layers, stored).run(name)
    return out


def _alternating(x: Tensor, layers: Sequence[_Shapes]) -> list[Tensor | None]:
    """What :meth:`_Shapes.new_stored` gives, but z and outputs share two buffers each."""
    most_z = max(layer.rows * max(layer.widths[1:]) for layer in layers)
    most_out = max([layer.rows * layer.widths[-1] for layer in layers[:-1]], default=0)
    z, outputs = (cycle([buffer(x, most, 1), buffer(x, most, 1)]) for most in (most_z, most_out))
    stored: list[Tensor | None] = []
    for layer in layers:
        stored += [layer.new_statistics(x), *(next(z) for _ in layer.widths[1:]), next(outputs)]
    return stored


class _Shapes:
    """The rows and widths of a layer."""

    rows: int
    widths: list[int]

    def __init__(self, x: Tensor, part: Part, before: _Shapes | None = None) -> None:
        rows = part.rows
        self.rows_before = x.size(0) if before is None else before.rows
        width = x.size(1) if before is None else before.widths[-1]
        self.widths = [width, *(weight.size(0) for weight, _ in part.chain)]
        self.matrix: SparseMatrix | None = None
        self.node = self.first = self.parent = None
        self.rows, self.samples = self.rows_before, 1
        if part.eps is not None:
            self.parent = rows.parent
            if isinstance(rows, PairRows):  # the matrix of the nodes serves all their pairs
                self.matrix, self.node, self.first = rows.operators.adjacency, rows.node, rows.bounds
            else:
                self.matrix = rows.matrix
                self.samples = self.rows_before // self.matrix.shape[1]
                self.rows = self.samples * self.matrix.shape[0]
        multiplicity = rows.multiplicity
        self.weight = None if multiplicity is None else multiplicity.to(x.dtype)
        self.total = self.rows if multiplicity is None else float(multiplicity.sum(dtype=torch.float64))
        self.segments = _segments(rows, self.rows)

    def new_stored(self, x: Tensor) -> list[Tensor]:
        """The statistics, z of every step, and the output."""
        widths = [*self.widths[1:], self.widths[-1]]
        return [self.new_statistics(x), *(buffer(x, self.rows, width) for width in widths)]

    def new_statistics(self, x: Tensor) -> Tensor:
        """Mean, scale and 1/std of every step."""
        return x.new_empty(3 * sum(self.widths[1:]))

    def numbers_of_gradient(self, step: int) -> int:
        """Numbers in g_k."""
        if step >= len(self.widths) - 1:
            return 0
        rows = self.rows
        if step == 0:
            rows = max(b - a for a, b in zip(self.segments, self.segments[1:], strict=False))
        return rows * self.widths[step]


def _shapes(x: Tensor, parts: Sequence[Part]) -> list[_Shapes]:
    layers = [_Shapes(x, parts[0])]
    for part in parts[1:]:
        layers.append(_Shapes(x, part, layers[-1]))
    return layers


class _Native(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, parts, *parameters):  # type: ignore[no-untyped-def]
        x = x.contiguous()
        layers = _shapes(x, parts)
        stored = [tensor for layer in layers for tensor in layer.new_stored(x)]
        call = _Call(x, parts, layers, stored)
        call.run("forward")
        *stored, out = stored
        ctx.save_for_backward(x, *parameters, *stored)
        ctx.parts, ctx.layers, ctx.call = parts, layers, call
        return out

    @staticmethod
    @first_derivatives_of_norms
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        x, *saved = ctx.saved_tensors  # raises where one has been changed since
        stored = saved[sum(1 + len(part.parameters) for part in ctx.parts) :]
        call, ctx.call = ctx.call, None  # what it holds is freed with the saved tensors
        if call is None or not call.points_to(x, ctx.parts, stored):  # a second pass, or tensors were moved
            call = _Call(x, ctx.parts, ctx.layers, stored)
        grad_x, gradients = call.backward(x, grad.contiguous())
        return grad_x, None, *gradients


class _Layer(ctypes.Structure):
    """``Layer`` of phi.cpp."""

    _fields_ = fields(
        (ctypes.c_int64, "rows rows_before samples steps skip input_gradient"),
        (ctypes.c_void_p, "widths x crow col value t_crow t_col t_value node first parent segments"),
        (ctypes.c_int64, "num_segments"),
        (ctypes.c_void_p, "weight"),
        (ctypes.c_double, "self total"),
        (ctypes.c_void_p, "norm_eps momentum running_mean running_var weights gamma beta z stats out"),
        (ctypes.c_void_p, "grad g grad_weights sums grad_x grad_self"),
    )


class _Phi(ctypes.Structure):
    """``Phi`` of phi.cpp."""

    _fields_ = fields((ctypes.c_int64, "num_layers"), (ctypes.c_void_p, "layers"))


class _Call:
    """What both passes tell the library.

    It holds the tensors that are pointed to, but for ``x`` and those ``stored``: the autograd graph has them,
    and frees them after the backward pass.
    """

    def __init__(
        self, x: Tensor, parts: Sequence[Part], layers: Sequence[_Shapes], stored: Sequence[Tensor | None]
    ) -> None:
        self.dtype, self.layers = x.dtype, layers
        self._addresses = _addresses(x, parts, stored)
        self._kept: list[Any] = []
        self.structures = (_Layer * len(parts))()
        before, tensors = pointer(x), iter(stored)
        for part, layer, structure in zip(parts, layers, self.structures, strict=True):
            stats, *z = (next(tensors) for _ in layer.widths)
            out = next(tensors, None)  # the backward pass has no use for the last one
            structure.x, structure.z, structure.stats = before, self._keep(pointers(z)), pointer(stats)
            structure.out = before = pointer(out)
            self._describe(part, layer, structure)

    def points_to(self, x: Tensor, parts: Sequence[Part], stored: Sequence[Tensor]) -> bool:
        """Whether these tensors, without the last output, are where they were."""
        found = _addresses(x, parts, stored)
        return found == self._addresses[: len(found)]

    def _describe(self, part: Part, layer: _Shapes, structure: Any) -> None:
        """All of a layer that is known before the passes."""
        norms = [norm for _, norm in part.chain]
        weights, gamma, beta = ([t.contiguous() for t in part.parameters[i::3]] for i in range(3))
        for name, tensors in (
            ("weights", weights),
            ("gamma", gamma),
            ("beta", beta),
            ("running_mean", [norm.running_mean for norm in norms]),
            ("running_var", [norm.running_var for norm in norms]),
        ):
            self._kept.append(tensors)
            setattr(structure, name, self._keep(pointers(tensors)))
        structure.norm_eps = self._array([norm.eps for norm in norms], ctypes.c_double)
        structure.momentum = self._array([norm.momentum for norm in norms], ctypes.c_double)
        structure.widths = self._array(layer.widths, ctypes.c_int64)
        structure.segments = self._array(layer.segments, ctypes.c_int64)
        structure.num_segments = len(layer.segments) - 1
        structure.rows, structure.rows_before, structure.samples = (
            layer.rows,
            layer.rows_before,
            layer.samples,
        )
        structure.steps, structure.skip = len(norms), part.skip
        structure.input_gradient = part.eps is not None
        structure.total = layer.total
        structure.self = 0.0 if part.eps is None else 1 + float(part.eps)
        for name in ("node", "first", "parent", "weight"):
            setattr(structure, name, pointer(getattr(layer, name)))
        _point(structure, layer.matrix, "")
        self._kept.append(layer)

    def _keep(self, array: Any) -> Any:
        self._kept.append(array)
        return ctypes.cast(array, ctypes.c_void_p)

    def _array(self, values: Sequence[Any], kind: Any) -> Any:
        return self._keep(numbers(values, kind))

    def run(self, name: str) -> None:
        """Call the library."""
        layers = ctypes.cast(self.structures, ctypes.c_void_p)
        call(f"phi_{name}", self.dtype, _Phi(num_layers=len(self.layers), layers=layers))

    def backward(self, x: Tensor, grad: Tensor) -> tuple[Tensor | None, list[Tensor | None]]:
        """The gradients of x and of all parameters, epsilon first in each layer."""
        layers = self.layers
        steps = max(len(layer.widths) for layer in layers) - 1
        # g_k, of a segment for k = 0, is not needed any more when the layer before has its own.
        scratch = [buffer(x, max(layer.numbers_of_gradient(k) for layer in layers), 1) for k in range(steps)]
        gradients: list[list[Tensor]] = []
        for layer, structure in zip(reversed(layers), reversed(self.structures), strict=True):
            structure.grad = pointer(grad)
            sums = x.new_zeros(2 * sum(layer.widths[1:]) + 1, dtype=torch.float64)
            structure.sums, structure.grad_self = pointer(sums), sums[-1:].data_ptr()
            structure.g = self._keep(pointers(scratch))
            grad_weights = [x.new_empty(b, a) for a, b in zip(layer.widths, layer.widths[1:], strict=False)]
            structure.grad_weights = self._keep(pointers(grad_weights))
            self._kept.append((grad, sums))
            gradients.append([sums, *grad_weights])
            if layer.matrix is not None:
                _point(structure, layer.matrix.t(), "t_")
                # Rows that stay the same have their gradient replaced, but for the one that was given.
                if layer is layers[-1] or layer.parent is not None or not structure.skip:
                    grad = buffer(x, layer.rows_before, layer.widths[0])
                structure.grad_x = pointer(grad)
        self.run("backward")
        found: list[Tensor | None] = []
        for layer, (sums, *grad_weights) in zip(layers, reversed(gradients), strict=True):
            *of_norms, of_eps = sums.to(x.dtype).split([w for w in layer.widths[1:] for _ in range(2)] + [1])
            found.append(None if layer.matrix is None else of_eps)
            for k, grad_weight in enumerate(grad_weights):
                found += [grad_weight, of_norms[2 * k + 1], of_norms[2 * k]]
        return (None if layers[0].matrix is None else grad), found


def _addresses(x: Tensor, parts: Sequence[Part], stored: Sequence[Tensor | None]) -> list[int | None]:
    return [pointer(t) for t in (x, *(t for part in parts for t in part.parameters), *stored)]


class _Taps(ctypes.Structure):
    """``Taps`` of taps.cpp."""

    _fields_ = fields((ctypes.c_int64, "graphs taps"), (ctypes.c_void_p, "sizes crow col value x out"))


class CompiledPairRows(PairRows):
    """All pairs, with taps by compiled code: ``compiled/taps.cpp``."""

    def _make_taps(self, x: Tensor, num_taps: int) -> Tensor:
        shift, sizes = self.operators.shift, self.graphs.sizes
        served = x.device.type == "cpu" and x.dtype == shift.value.dtype and x.dtype in LANES
        if x.requires_grad or x.size(1) != 1 or not served or not available():
            return super()._make_taps(x, num_taps)
        out = x.new_empty(x.size(0), num_taps, 1)
        x, sizes = x.contiguous(), sizes.contiguous()
        taps = _Taps(
            graphs=sizes.numel(), taps=num_taps, sizes=pointer(sizes), x=pointer(x), out=pointer(out)
        )
        _point(taps, shift, "")
        call("taps", x.dtype, taps)
        return out


def _segments(rows: Rows, num_rows: int) -> list[int]:
    """Bounds of rows whose neighbours are among them: of each graph where graphs follow one another."""
    if isinstance(rows, PairRows):
        return [0, *accumulate(size * size for size in rows.graphs.host_sizes)]
    if isinstance(rows, SampleRows):
        return [0, *accumulate(size * rows.num_samples for size in rows.graphs.host_sizes)]
    return [0, num_rows]


def _point(structure: Any, matrix: SparseMatrix | None, prefix: str) -> None:
    if matrix is not None:
        for part in ("crow", "col", "value"):
            setattr(structure, prefix + part, pointer(getattr(matrix, part)))
