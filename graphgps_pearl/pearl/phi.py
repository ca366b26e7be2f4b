r""":math:`\Phi`, the network that every signal goes through: a generalised layer, GIN layers, skips.

Generalised layer (eq. 4 of the paper), with taps :math:`S^k X`:

.. math:: X' = \sigma\Big(\sum_{k < K} S^k X H_k\Big)

GIN layer: :math:`X' = MLP((1 + \epsilon) X + A X)`. A layer takes rows :obj:`[R, F]` and a
:class:`~graphgps_pearl.pearl.rows.Rows` object that applies S and A to them. There is no dropout: equal rows
have to stay equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby, pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from graphgps_pearl.pearl.checks import check_at_least, check_name
from graphgps_pearl.pearl.hooks import apply_layer, apply_layers
from graphgps_pearl.pearl.norm import RowNorm, has_own_bias, make_norm
from graphgps_pearl.pearl.rows import Rows
from graphgps_pearl.vocabulary import PHI_ENDS, SKIPS


def _cube(x: Tensor) -> Tensor:
    return x * x * x


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "elu": F.elu,
    "leaky_relu": F.leaky_relu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": F.softplus,
    "square": torch.square,
    "cube": _cube,
    "identity": _identity,
}


class Layer(nn.Module):
    """A layer of :math:`\\Phi`: called with ``(x, rows)``, rows of width ``in_dim`` to ``out_dim``."""

    in_dim: int
    out_dim: int

    def reset_parameters(self) -> None:
        """Draw new weights."""
        raise NotImplementedError


class TapLayer(Layer):
    r"""The generalised layer :math:`X' = \sigma(norm(\sum_{k<K} S^k X H_k))`.

    ``weight`` :obj:`[K, in_dim, out_dim]` holds the :math:`H_k`. As in eq. 4 there is neither bias nor
    normalisation unless asked for.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        num_taps: int,
        *,
        act: str = "relu",
        norm: str = "none",
        bias: bool = False,
    ) -> None:
        super().__init__()
        if num_taps < 1:
            raise ValueError(f"num_taps of a layer must be at least 1, got {num_taps}")
        check_name("act", act, ACTIVATIONS)
        self.in_dim, self.out_dim, self.num_taps, self.act = in_dim, out_dim, num_taps, act
        self.weight = nn.Parameter(torch.empty(num_taps, in_dim, out_dim))
        self.bias = nn.Parameter(torch.empty(out_dim)) if bias else None
        self.norm: RowNorm = make_norm(norm, out_dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, at the scale of a linear layer on the taps."""
        bound = 1 / math.sqrt(self.num_taps * self.in_dim)
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)
        self.norm.reset_parameters()

    def taps(self, x: Tensor, rows: Rows) -> Tensor:
        """The taps side by side, :obj:`[R, K * in_dim]`."""
        return rows.taps(x, self.num_taps).flatten(1)

    def forward(self, x: Tensor, rows: Rows) -> Tensor:
        """Rows :obj:`[R, in_dim]` to rows :obj:`[R, out_dim]`."""
        z = self.taps(x, rows) @ self.weight.flatten(0, 1)  # Σ_k S^k X H_k
        if self.bias is not None:
            z = z + self.bias
        return ACTIVATIONS[self.act](self.norm(z, rows))

    def __repr__(self) -> str:
        sizes = f"{self.in_dim}, {self.out_dim}, num_taps={self.num_taps}"
        return f"{type(self).__name__}({sizes}, act={self.act!r}, norm={type(self.norm).__name__})"


class GINLayer(Layer):
    r"""The GIN layer :math:`X' = MLP((1 + \epsilon) X + A X)`, :math:`\epsilon` learned from 0.

    Every linear map of the MLP is followed by the normalisation and the activation; the last one by what
    ``end`` says: ``activation`` (both), ``norm`` (no activation) or ``linear`` (neither, with a bias).
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        *,
        mlp_layers: int = 2,
        mlp_hidden: int | None = None,
        act: str = "relu",
        norm: str = "batch",
        end: str = "activation",
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_name("end", end, ("norm", *PHI_ENDS))
        check_at_least(1, mlp_layers=mlp_layers, mlp_hidden=mlp_hidden)
        check_name("act", act, ACTIVATIONS)
        self.in_dim, self.out_dim, self.act, self.end = in_dim, out_dim, act, end
        widths = [in_dim, *[mlp_hidden or out_dim] * (mlp_layers - 1), out_dim]
        self.eps = nn.Parameter(torch.zeros(1))
        norms = [norm] * (mlp_layers - 1) + ["none" if end == "linear" else norm]
        biases = [not has_own_bias(name) for name in norms]
        biases[-1] = bias and biases[-1]
        self.linears = nn.ModuleList(
            nn.Linear(a, b, bias=own) for (a, b), own in zip(pairwise(widths), biases, strict=True)
        )
        self.norms = nn.ModuleList(map(make_norm, norms, widths[1:]))

    def reset_parameters(self) -> None:
        """Draw new weights and set epsilon to 0."""
        nn.init.zeros_(self.eps)
        for module in (*self.linears, *self.norms):
            module.reset_parameters()

    def forward(self, x: Tensor, rows: Rows) -> Tensor:
        """Rows :obj:`[R, in_dim]` to rows :obj:`[R, out_dim]`."""
        x = (1 + self.eps) * rows.own(x) + rows.neighbours(x)
        for number, (linear, norm) in enumerate(zip(self.linears, self.norms, strict=True), start=1):
            x = norm(linear(x), rows)
            if number < len(self.linears) or self.end == "activation":
                x = ACTIVATIONS[self.act](x)
        return x

    def __repr__(self) -> str:
        sizes = f"{self.in_dim}, {self.out_dim}, mlp_layers={len(self.linears)}"
        if self.end != "activation":
            sizes += f", end={self.end!r}"
        return f"{type(self).__name__}({sizes}, act={self.act!r}, norm={type(self.norms[0]).__name__})"


class Phi(nn.Module):
    r"""A stack of layers with skip connections, and a linear readout where ``out_dim`` is given.

    ``skip="residual"``: :math:`X_{l+1} = X_l + f_l(X_l)` wherever the widths agree (all but the first layer,
    which lifts the signal). ``skip="sum"``: the output is :math:`\sum_l X_l`, the sum of all layers' outputs.

    Args:
        layers: the layers, in order; each takes ``(x, rows)`` and has ``in_dim`` and ``out_dim``.
        skip: one of :data:`SKIPS`.
        out_dim: width of the readout; without it the last layer's rows are the output.
        bias: whether the readout has a bias.
    """

    layers: nn.ModuleList

    def __init__(
        self,
        layers: Sequence[Layer],
        *,
        skip: str = "none",
        out_dim: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_name("skip", skip, SKIPS)
        _check_widths(layers, skip)
        self.skip = skip
        self.layers = nn.ModuleList(layers)
        width = layers[-1].out_dim
        self.readout = nn.Linear(width, out_dim, bias=bias) if out_dim is not None else None
        self.out_dim: int = out_dim if out_dim is not None else width

    def reset_parameters(self) -> None:
        """Draw new weights."""
        for module in (*self.layers, *([self.readout] if self.readout is not None else [])):
            module.reset_parameters()

    def forward(self, x: Tensor, rows: Rows | Sequence[Rows]) -> Tensor:
        """Signals :obj:`[R, in_dim]` to rows :obj:`[R, out_dim]`; ``rows`` for all layers, or one each."""
        x = self.hidden(x, rows)
        return x if self.readout is None else self.readout(x)

    def hidden(self, x: Tensor, rows: Rows | Sequence[Rows]) -> Tensor:
        """What the readout is applied to: the output of the layers."""
        rows_of = rows if isinstance(rows, Sequence) else [rows] * len(self.layers)
        layers = cast(list[Layer], list(self.layers))
        if self.skip != "sum":  # layer(x, rows) [+ x] for each layer, by kernels where they serve
            residual = [self.skip == "residual" and layer.in_dim == layer.out_dim for layer in layers]
            return apply_layers(layers, x, rows_of, residual)
        total: Tensor | None = None
        for layer, layer_rows in zip(layers, rows_of, strict=True):
            x = apply_layer(layer, x, layer_rows, residual=False)
            total = x if total is None else layer_rows.own(total) + x
        assert total is not None
        return total

    def __repr__(self) -> str:
        runs = [(text, len(list(run))) for text, run in groupby(map(repr, self.layers))]
        layers = ", ".join(text if times == 1 else f"{times} x {text}" for text, times in runs)
        return f"{type(self).__name__}([{layers}], skip={self.skip!r}, out_dim={self.out_dim})"


def build_phi(
    out_dim: int,
    *,
    hidden_dim: int,
    num_layers: int,
    num_taps: int,
    mlp_layers: int,
    mlp_hidden: int | None,
    norm: str,
    skip: str,
    act: str,
    end: str = "activation",
    bias: bool = True,
) -> Phi:
    r"""The paper's :math:`\Phi` on scalar signals: a generalised layer (unless K = 0), then GIN layers.

    ``norm="graph"`` is for the generalised layer, as in the authors' code; the others have batch norm.
    ``end="linear"`` is theirs too: GIN layers end with the normalisation, the last one with its linear map,
    which gives the ``out_dim`` columns, and there is no readout. ``bias``: of the readout, or of that map.
    """
    check_name("end", end, PHI_ENDS)
    check_at_least(1, dim_pe=out_dim, hidden_dim=hidden_dim)
    check_at_least(0, num_layers=num_layers, num_taps=num_taps)
    if num_taps == 0 and num_layers == 0:
        raise ValueError("num_taps and num_layers are both 0: there is no layer left")
    if num_taps == 0 and norm == "graph":
        raise ValueError("norm 'graph' is that of the generalised layer, which num_taps=0 omits")
    if end == "linear" and num_layers == 0:
        raise ValueError("end 'linear' is that of GIN layers, and num_layers is 0")
    layers: list[Layer] = []
    if num_taps > 0:
        layers.append(TapLayer(1, hidden_dim, num_taps, act=act, norm=norm, bias=not has_own_bias(norm)))
    inner = "batch" if norm == "graph" else norm
    widths = [hidden_dim if num_taps else 1, *[hidden_dim] * num_layers]
    ends = [end] * num_layers
    if end == "linear":
        widths[-1] = out_dim
        ends[:-1] = ["norm"] * (num_layers - 1)
    mlp = {"mlp_layers": mlp_layers, "mlp_hidden": hidden_dim if mlp_hidden is None else mlp_hidden}
    for (before, after), last in zip(pairwise(widths), ends, strict=True):
        own = bias or last != "linear"  # without a readout the last layer is it
        layers.append(GINLayer(before, after, **mlp, act=act, norm=inner, end=last, bias=own))
    return Phi(layers, skip=skip, out_dim=None if end == "linear" else out_dim, bias=bias)


def _check_widths(layers: Sequence[Layer], skip: str) -> None:
    if not layers:
        raise ValueError("Phi needs at least one layer")
    for before, after in pairwise(layers):
        if before.out_dim != after.in_dim:
            raise ValueError(f"{before!r} gives {before.out_dim} columns, {after!r} takes {after.in_dim}")
    if skip == "sum" and len({layer.out_dim for layer in layers}) > 1:
        raise ValueError("skip 'sum' adds all layers' outputs: they must have the same width")
