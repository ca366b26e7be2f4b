r"""A whole layer of :math:`\Phi` with batch norm and ReLU, in blocks of rows that stay in the cache.

From rows :math:`h_0` on (:math:`(1 + \epsilon) x + A x` in a GIN layer, the taps in a generalised one)

.. math:: z_k = h_{k-1} W_k^\top, \quad h_k = \max(0, s_k z_k + t_k), \quad s_k = \gamma_k / \sigma_k, \quad
          t_k = \beta_k - \mu_k s_k

for k = 1, ..., n; the output is :math:`h_n`, plus x where there is a skip. The statistics of :math:`z_k` need
all rows, so each k is one pass over the blocks: it makes a block's :math:`h_{k-1}`, multiplies and sums.
Saved for the backward pass are :math:`h_0` and the :math:`z_k`; one pass over the blocks for each k gives

.. math:: e_k = g_k - \tfrac{w}{W} \big(\textstyle\sum g_k + \hat z_k \sum g_k \hat z_k\big), \quad
          \partial W_k = s_k e_k^\top h_{k-1}, \quad g_{k-1} = [h_{k-1} > 0]\, e_k\, s_k W_k

with w the rows' multiplicities. A block is summed in the rows' own precision, the blocks in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from graphgps_pearl.pearl.norm import BatchNorm, first_derivatives_of_norms
from graphgps_pearl.pearl.operators import SparseMatrix
from graphgps_pearl.pearl.rows import Rows

_FAR = 16.0  # if a squared mean exceeds the variance by this factor, z is centred before it is squared


class Step(NamedTuple):
    """A linear map of a layer and the norm behind it."""

    weight: Tensor  # [out, in]
    gamma: Tensor
    beta: Tensor


class Part(NamedTuple):
    """A layer: its linear maps with their norms, and its rows."""

    chain: list[tuple[Tensor, BatchNorm]]
    rows: Rows
    eps: Tensor | None  # None: the layer does not start with a sum over neighbours
    skip: bool  # whether x is added at the end

    @property
    def parameters(self) -> list[Tensor]:
        """Three for each linear map."""
        return [tensor for weight, norm in self.chain for tensor in (weight, norm.weight, norm.bias)]


def run(x: Tensor, part: Part) -> Tensor:
    """The layer's output."""
    out, count, *statistics = _BatchChain.apply(
        x, part.eps, part.rows, part.skip, [norm.eps for _, norm in part.chain], *part.parameters
    )
    for k, (_, norm) in enumerate(part.chain):
        norm.track(statistics[2 * k], statistics[2 * k + 1], count)
    return out


class _Norm(NamedTuple):
    """One norm: its input z and the affine map that it applies."""

    z: Tensor  # [R, F], minus an offset where the mean is far from zero
    mean: Tensor  # of z as stored, float64
    invstd: Tensor  # float64
    scale: Tensor  # s
    shift: Tensor  # t


class _BatchChain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, eps, rows, skip, norm_eps, *parameters):  # type: ignore[no-untyped-def]
        steps = _steps(parameters)
        h0 = x if eps is None else product(rows.matrix, x)
        blocks = Blocks(h0, _widths(h0, steps), rows.multiplicity)
        if eps is not None:
            for _, b in blocks:
                h0[b].add_(own(x, rows, b), alpha=1 + float(eps))
        norms: list[_Norm] = []
        statistics: list[Tensor] = []
        for step, eps_k in zip(steps, norm_eps, strict=True):
            z = h0.new_empty(h0.size(0), step.weight.size(0))
            sums = blocks.table(z.size(1))
            for i, b in blocks:
                h = _activated(norms[-1], b, blocks) if norms else h0[b]
                z_b = torch.mm(h, step.weight.t(), out=z[b])
                blocks.add(sums, i, b, blocks.weight, z_b, z_b)
            offset, mean, var = _mean_and_variance(z, sums, blocks)
            norms.append(_normalised(z, mean, var, step, eps_k))
            statistics += [(offset + mean).unsqueeze(0), var.unsqueeze(0)]
        out = torch.empty_like(norms[-1].z)
        for _, b in blocks:
            out_b = torch.addcmul(norms[-1].shift, norms[-1].z[b], norms[-1].scale, out=out[b]).relu_()
            if skip:
                out_b += own(x, rows, b)
        ctx.save_for_backward(x, eps, h0, *parameters, *(t for norm in norms for t in norm))
        ctx.rows, ctx.skip, ctx.steps = rows, skip, len(steps)
        count = blocks.count.view(1, 1)
        ctx.mark_non_differentiable(count, *statistics)
        return out, count, *statistics

    @staticmethod
    @first_derivatives_of_norms
    def backward(ctx, grad, *_):  # type: ignore[no-untyped-def]
        x, eps, h0, *saved = ctx.saved_tensors
        steps = _steps(saved[: 3 * ctx.steps])
        norms = [_Norm(*saved[i : i + 5]) for i in range(3 * ctx.steps, len(saved), 5)]
        blocks = Blocks(h0, _widths(h0, steps), ctx.rows.multiplicity)
        gradients: list[Tensor] = []
        g, sums = _behind_last(grad, norms[-1], blocks)
        for k in reversed(range(len(steps))):
            before = norms[k - 1] if k else None
            wanted = k or eps is not None or ctx.needs_input_grad[0]
            g_before = h0.new_empty(h0.size(0), steps[k].weight.size(1)) if wanted else None
            g, sums, step_gradients = _back(g, sums, g_before, steps[k], norms[k], before or h0, blocks)
            gradients = [*step_gradients, *gradients]
        grad_x, grad_eps = g, None
        if eps is not None:
            grad_x, grad_eps = to_neighbours(g, grad if ctx.skip else None, x, eps, ctx.rows, blocks)
        return grad_x, grad_eps, None, None, None, *gradients


def _behind_last(grad: Tensor, norm: _Norm, blocks: Blocks) -> tuple[Tensor, Tensor]:
    """g_n and its sums."""
    g, sums = torch.empty_like(norm.z), blocks.table(norm.z.size(1))
    for i, b in blocks:
        relu_gradient(grad[b], _activated(norm, b, blocks), 0, grad_input=g[b])
        blocks.add(sums, i, b, None, g[b], norm.z[b])
    return g, sums


def _back(
    g: Tensor,
    sums: Tensor,
    out: Tensor | None,
    step: Step,
    norm: _Norm,
    before: _Norm | Tensor,
    blocks: Blocks,
) -> tuple[Tensor | None, Tensor, tuple[Tensor, Tensor, Tensor]]:
    """From g_k to g_{k-1} (in ``out``, None if it is not needed), its sums, and the gradients of the step."""
    sum_g, sum_gz = sums.sum(1, dtype=torch.float64).squeeze(1)
    sum_gz = (sum_gz - norm.mean * sum_g) * norm.invstd
    slope = norm.invstd * sum_gz / blocks.total
    at_zero = (sum_g / blocks.total - slope * norm.mean).to(g.dtype)
    slope = slope.to(g.dtype)
    scaled = step.weight * norm.scale.unsqueeze(1)
    grad_weight = torch.zeros_like(step.weight)
    new_sums = blocks.table(step.weight.size(1))
    for i, b in blocks:
        e = _corrected(g[b], norm, at_zero, slope, b, blocks)
        h = before[b] if isinstance(before, Tensor) else _activated(before, b, blocks)
        grad_weight.addmm_(e.t(), h)
        if out is None:
            continue
        g_before = torch.mm(e, scaled, out=out[b])
        if isinstance(before, _Norm):
            relu_gradient(g_before, h, 0, grad_input=g_before)
            blocks.add(new_sums, i, b, None, g_before, before.z[b])
    grad_weight *= norm.scale.unsqueeze(1)
    return out, new_sums, (grad_weight, sum_gz.to(g.dtype), sum_g.to(g.dtype))


def _steps(parameters: Sequence[Tensor]) -> list[Step]:
    return [Step(*parameters[i : i + 3]) for i in range(0, len(parameters), 3)]


def _widths(h0: Tensor, steps: Sequence[Step]) -> list[int]:
    return [h0.size(1), *(step.weight.size(0) for step in steps)]


def _mean_and_variance(z: Tensor, sums: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor, Tensor]:
    """What was subtracted from ``z``, the mean of the rest, and the variance; :obj:`[F]` in float64."""
    mean, var = _moments(sums, blocks)
    offset = torch.zeros_like(mean)
    if bool((mean.square() > _FAR * var).any()):
        offset = mean.to(z.dtype)
        for i, b in blocks:
            blocks.add(sums, i, b, blocks.weight, z[b].sub_(offset), z[b])
        mean, var = _moments(sums, blocks)
    return offset.double(), mean, var.clamp(min=0)


def _moments(sums: Tensor, blocks: Blocks) -> tuple[Tensor, Tensor]:
    first, second = sums.sum(1, dtype=torch.float64).squeeze(1) / blocks.total
    return first, second - first.square()


def _normalised(z: Tensor, mean: Tensor, var: Tensor, step: Step, norm_eps: float) -> _Norm:
    invstd = (var + norm_eps).rsqrt()
    scale = step.gamma.double() * invstd
    shift = step.beta.double() - mean * scale
    return _Norm(z, mean, invstd, scale.to(z.dtype), shift.to(z.dtype))


def _activated(norm: _Norm, b: slice, blocks: Blocks) -> Tensor:
    """A block of h_k."""
    return blocks.activated(norm.z[b], norm.scale, norm.shift)


def _corrected(g: Tensor, norm: _Norm, at_zero: Tensor, slope: Tensor, b: slice, blocks: Blocks) -> Tensor:
    """A block of e_k = g_k - w (at_zero + slope z_k)."""
    e = torch.addcmul(at_zero, norm.z[b], slope, out=blocks.scratch(2, g))
    if blocks.weight is None:
        return torch.sub(g, e, out=e)
    return torch.addcmul(g, blocks.weight[0, b].unsqueeze(1), e, value=-1, out=e)


_BLOCK = 2**17  # numbers in a block: half a megabyte in float32
_ONE = 2**20  # up to this size everything is one block: the calls would cost more than the cache saves

relu_gradient = torch.ops.aten.threshold_backward.grad_input


class Blocks:
    """The rows cut into blocks, with scratch buffers for one of them."""

    def __init__(self, like: Tensor, widths: Sequence[int], weight: Tensor | None) -> None:
        size = max((_BLOCK if like.size(0) * max(widths) > _ONE else _ONE) // max(widths), 64)
        self._slices = [slice(start, start + size) for start in range(0, like.size(0), size)]
        self._scratch: dict[int, Tensor] = {}
        self._largest = min(size, like.size(0)) * max(widths)
        self.ones = like.new_ones(1, like.size(0))
        self.weight = None if weight is None else weight.to(like.dtype).unsqueeze(0)  # [1, R]
        self.count = (self.ones if weight is None else weight).sum(dtype=torch.float64)
        self.total = self.count.clamp(min=1e-300)

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        return enumerate(self._slices)

    def scratch(self, which: int, like: Tensor) -> Tensor:
        """A buffer of the shape of ``like``, valid until the next block."""
        if which not in self._scratch:
            self._scratch[which] = self.ones.new_empty(self._largest)
        return self._scratch[which][: like.numel()].view(like.shape)

    def table(self, width: int) -> Tensor:
        """Buffer for two sums of every block, :obj:`[2, blocks, 1, F]`."""
        return self.ones.new_zeros(2, len(self._slices), 1, width)

    def add(self, sums: Tensor, i: int, b: slice, factor: Tensor | None, a: Tensor, other: Tensor) -> None:
        """Sum a block's rows of ``a`` and of ``a * other``, each row ``factor`` times, into a table."""
        times = (self.ones if factor is None else factor)[:, b]
        torch.mm(times, a, out=sums[0, i])
        torch.mm(times, torch.mul(a, other, out=self.scratch(0, a)), out=sums[1, i])

    def activated(self, z: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """The block ``max(0, scale z + shift)``."""
        return torch.addcmul(shift, z, scale, out=self.scratch(1, z)).relu_()


def to_neighbours(
    g: Tensor, grad: Tensor | None, x: Tensor, eps: Tensor, rows: Rows, blocks: Blocks
) -> tuple[Tensor, Tensor]:
    """The gradients of x and of epsilon from that of h_0 and, where x was added, of the output."""
    grad_x = product(rows.matrix.t(), g)
    grad_eps = torch.zeros((), dtype=torch.float64, device=x.device)
    factor = 1 + float(eps)
    for _, b in blocks:
        grad_eps += torch.dot(g[b].flatten(), own(x, rows, b).flatten())
        g[b] *= factor
        if grad is not None:
            g[b] += grad[b]
    if rows.parent is None:
        return grad_x.add_(g), grad_eps.to(eps.dtype).view(eps.shape)
    return grad_x.index_add_(0, rows.parent, g), grad_eps.to(eps.dtype).view(eps.shape)


def product(matrix: SparseMatrix, x: Tensor) -> Tensor:
    """The matrix times rows, or times all the rows of a node side by side."""
    return matrix.product(x.reshape(matrix.shape[1], -1)).view(-1, x.size(1))


def own(x: Tensor, rows: Rows, b: slice) -> Tensor:
    """A block of each row's own value one layer earlier."""
    return x[b] if rows.parent is None else x.index_select(0, rows.parent[b])
