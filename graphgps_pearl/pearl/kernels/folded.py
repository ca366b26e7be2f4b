r"""A layer of :math:`\Phi` in evaluation without gradients: norms folded into linear maps, rows in blocks.

With running statistics a batch norm is an affine map, so a linear map and its norm are one linear map:
:math:`\gamma (W h - \mu) / \sigma + \beta = W' h + b'`. Nothing needs all rows, so a block of rows goes
through all linear maps of a layer while it is in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl.kernels.blocked import own, product
from graphgps_pearl.pearl.norm import BatchNorm, NoNorm
from graphgps_pearl.pearl.phi import ACTIVATIONS, GINLayer, TapLayer
from graphgps_pearl.pearl.rows import Rows

_BLOCK = 2**16  # numbers in a block of the widest rows: a quarter of a megabyte in float32

Activation = Callable[[Tensor], Tensor]
Map = tuple[Tensor, Tensor, Activation | None]  # W' transposed [in, out], b' [out]


def serves(layer: GINLayer | TapLayer, x: Tensor) -> bool:
    """Whether the layer's norms are affine maps, and no gradient is wanted."""
    if torch.is_grad_enabled() or x.dtype not in (torch.float32, torch.float64):
        return False
    norms = layer.norms if isinstance(layer, GINLayer) else [layer.norm]
    # A norm may be in another mode than its layer, as where its statistics are re-estimated.
    if not all(
        isinstance(norm, NoNorm) or (isinstance(norm, BatchNorm) and not norm.training) for norm in norms
    ):
        return False
    return all(parameter.dtype == x.dtype for parameter in layer.parameters())


def evaluated(layer: GINLayer | TapLayer, x: Tensor, rows: Rows, residual: bool) -> Tensor:
    """``layer(x, rows)``, plus each row's own value where ``residual``."""
    if isinstance(layer, TapLayer):
        h, eps, maps = layer.taps(x, rows), None, [_tap_map(layer)]
        x = rows.own(x) if residual else x  # merged pairs: the taps have more rows than the signal
    else:
        h, eps, maps = product(rows.matrix, x), 1 + float(layer.eps), _gin_maps(layer)
    out = h.new_empty(h.size(0), layer.out_dim)
    size = max(_BLOCK // max(h.size(1), *(shift.numel() for _, shift, _ in maps)), 64)
    for start in range(0, h.size(0), size):
        b = slice(start, start + size)
        h_b = h[b] if eps is None else h[b].add_(own(x, rows, b), alpha=eps)
        for weight, shift, act in maps:
            h_b = torch.addmm(shift, h_b, weight)
            h_b = h_b if act is None else act(h_b)
        out[b] = h_b.add_(own(x, rows, b)) if residual else h_b
    return out


def _gin_maps(layer: GINLayer) -> list[Map]:
    acts: list[Activation | None] = [_activation(layer.act)] * len(layer.linears)
    acts[-1] = acts[-1] if layer.end == "activation" else None
    return [
        (*_folded(linear.weight.t(), linear.bias, norm), act)
        for linear, norm, act in zip(_linears(layer), layer.norms, acts, strict=True)
    ]


def _tap_map(layer: TapLayer) -> Map:
    return (*_folded(layer.weight.flatten(0, 1), layer.bias, layer.norm), _activation(layer.act))


def _linears(layer: GINLayer) -> Sequence[nn.Linear]:
    return [linear for linear in layer.linears if isinstance(linear, nn.Linear)]


def _activation(name: str) -> Activation:
    return torch.relu_ if name == "relu" else ACTIVATIONS[name]


def _folded(weight: Tensor, bias: Tensor | None, norm: nn.Module) -> tuple[Tensor, Tensor]:
    """Weights :obj:`[in, out]` and shift :obj:`[out]` of the linear map and its norm in one."""
    shift = weight.new_zeros(weight.size(1)) if bias is None else bias
    if isinstance(norm, BatchNorm):
        scale = norm.weight.double() * (norm.running_var.double() + norm.eps).rsqrt()
        moved = norm.bias + (shift - norm.running_mean.double()) * scale
        weight, shift = (weight * scale).to(weight.dtype), moved.to(weight.dtype)
    return weight.contiguous(), shift
