"""Which layers are computed in blocks of rows: ReLU and batch or layer norm, in full precision on a CPU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from graphgps_pearl.pearl.chain import Chain, chained
from graphgps_pearl.pearl.norm import BatchNorm, LayerNorm
from graphgps_pearl.pearl.row_chain import RowChain, row_chained
from graphgps_pearl.pearl.rows import Rows


def in_blocks(
    x: Tensor,
    linears: Sequence[tuple[Tensor, Tensor | None]],
    norms: Iterable[nn.Module],
    act: str,
    rows: Rows,
    eps: Tensor | None = None,
    skip: bool = False,
) -> Tensor | None:
    """A layer of linear maps (weight, bias), each with a norm and the activation behind it, or None.

    None says that this layer is not made for it and has to be written out. With ``eps`` it begins with the
    sum over the neighbours, as a GIN layer, and ``skip`` then adds x in the end.
    """
    if act != "relu" or x.device.type != "cpu" or not x.numel():
        return None
    if x.dtype not in (torch.float32, torch.float64) or torch.is_autocast_enabled("cpu"):
        return None
    batch: Chain = []
    layer: RowChain = []
    for (weight, bias), norm in zip(linears, norms, strict=True):
        if weight.dtype != x.dtype:
            return None
        if type(norm) is BatchNorm and norm.training and bias is None:
            batch.append((weight, norm))
        elif type(norm) is LayerNorm and bias is not None:
            layer.append((weight, bias, norm))
    if len(batch) == len(linears):
        return chained(x, batch, rows, eps, skip)
    if len(layer) == len(linears):
        return row_chained(x, layer, rows, eps, skip)
    return None
