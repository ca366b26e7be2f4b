r"""Global attention inside each graph of a batch: exact (softmax) and linear (Performer).

Both map packed nodes [N, F] to packed nodes, given their :class:`~graphgps_pearl.layers.layout.Layout`. The
projections run on packed rows, without padding, and padding changes no result anywhere. Softmax attention
runs over groups of graphs of similar size (:mod:`~graphgps_pearl.layers.grouping`), so that little is padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.attention.performer import PerformerAttention, generalized_kernel

from graphgps_pearl.contracts import AttentionBias, UpdatedBias
from graphgps_pearl.errors import ConfigError
from graphgps_pearl.layers.grouping import DensePairs, Grouping
from graphgps_pearl.layers.kernels import attention as kernel
from graphgps_pearl.layers.layout import Layout, wide_sum
from graphgps_pearl.layers.linear import Linear, linear
from graphgps_pearl.layers.names import unknown
from graphgps_pearl.switches import kernels_enabled
from graphgps_pearl.vocabulary import ATTENTION_GATES


def attend(
    qkv: Tensor, heads: int, grouping: Grouping, bias: Sequence[Tensor | None], dropout: float
) -> Tensor:
    """softmax(Q Kᵀ / sqrt(d) + bias) V inside each graph, with dropout on the softmax, [N, F].

    Args:
        qkv: [N, 3 F], packed nodes.
        heads: H; d is F / H.
        grouping: of the graphs.
        bias: for each group, broadcastable to its logits [B_g, H, n_g, n_g], -inf where a key is padding.
        dropout: probability with which a weight is dropped.
    """
    dim = qkv.size(1) // 3
    if not grouping.groups:
        return qkv.new_empty(0, dim)
    dense: Sequence[Tensor] = [_ToDense.apply(qkv, grouping)]
    if len(grouping.groups) > 1:
        dense = dense[0].split([group.nodes.numel() for group in grouping.groups])
    out = []
    for group, rows, added in zip(grouping.groups, dense, bias, strict=True):
        parts = rows.view(-1, group.size, 3, heads, dim // heads).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)  # each [B_g, H, n_g, d]
        head = F.scaled_dot_product_attention(query, key, value, attn_mask=added, dropout_p=dropout)
        out.append(head.transpose(1, 2).reshape(-1, dim))
    return (out[0] if len(out) == 1 else torch.cat(out)).index_select(0, grouping.dense_row)


class _ToDense(torch.autograd.Function):
    """Packed rows to the dense rows of all groups. Padding has no gradient, so backward is a gather too."""

    @staticmethod
    def forward(ctx, x, grouping):  # type: ignore[no-untyped-def] # torch's signature
        ctx.grouping = grouping
        return x.index_select(0, grouping.nodes)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        return grad.index_select(0, ctx.grouping.dense_row), None


class Gate(nn.Module):
    r"""A gate on the concatenated heads, computed from the attention's input.

    .. math::
        y' = \sigma(x W_g + b_g) \odot y

    Args:
        dim: F, the width of x.
        width: of y.
        num_gates: the number of heads (all channels of a head share its gate), or ``width``.
    """

    def __init__(self, dim: int, width: int, num_gates: int) -> None:
        super().__init__()
        self.linear = Linear(dim, num_gates)
        self.shared = width // num_gates

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        """y [N, width] and x [N, F] to [N, width]."""
        gate = self.linear(x).sigmoid()
        return y * (gate if self.shared == 1 else gate.repeat_interleave(self.shared, dim=1))


def make_gate(dim: int, heads: int, width: int, kind: str) -> Gate | None:
    """The gate of that kind (see ``vocabulary``), for ``heads`` heads of ``width`` channels together."""
    if kind not in ATTENTION_GATES:
        raise unknown("gt.attn_gate", kind, ATTENTION_GATES)
    return None if kind == "none" else Gate(dim, width, heads if kind == "head" else width)


class MultiheadAttention(nn.Module):
    r"""Softmax self-attention over the nodes of each graph.

    .. math::
        \mathrm{head}_h = \mathrm{softmax}(Q_h K_h^\top / \sqrt{F/H} + B_h) V_h, \qquad
        \mathrm{out} = [\mathrm{head}_1, \dots, \mathrm{head}_H] W_o + b_o

    Parameters, their names and their initialisation are those of :class:`torch.nn.MultiheadAttention`, and
    where there is a gate, its own. The gate multiplies the concatenated heads before W_o.

    Args:
        dim: F, the width.
        heads: H, a divisor of F.
        dropout: probability with which an attention weight is dropped in training.
        gate: ``none``, ``head`` or ``channel``, see :class:`Gate`.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0, gate: str = "none") -> None:
        super().__init__()
        check_heads(dim, heads)
        self.dim, self.heads, self.dropout = dim, heads, dropout
        self.in_proj_weight = nn.Parameter(torch.empty(3 * dim, dim))
        self.in_proj_bias = nn.Parameter(torch.empty(3 * dim))
        self.out_proj = Linear(dim, dim)
        # torch's order of draws, so that the same seed gives the same weights.
        nn.init.xavier_uniform_(self.in_proj_weight)
        nn.init.zeros_(self.in_proj_bias)
        nn.init.zeros_(self.out_proj.bias)
        self.gate = make_gate(dim, heads, dim, gate)

    def forward(self, x: Tensor, layout: Layout, bias: Tensor | AttentionBias | None = None) -> Tensor:
        """Attend.

        Args:
            x: [N, F] packed nodes.
            layout: of the batch.
            bias: [B, H or 1, n, n], added to the logits (query, key); entries at padding are ignored. Or the
                same group by group.
        """
        qkv = linear(x, self.in_proj_weight, self.in_proj_bias)
        dropout = self.dropout if self.training else 0.0
        # On a GPU torch's own attention is one kernel each way, and torch.compile can read it.
        use_kernel = 0 < dropout < 1 and qkv.device.type == "cpu" and not torch.compiler.is_compiling()
        function = kernel.attend if use_kernel and kernels_enabled() else attend
        biases = _of_groups(bias, layout, qkv.dtype)
        out = function(qkv, self.heads, layout.grouping, biases, dropout)
        if isinstance(bias, UpdatedBias):
            bias.update(x, qkv, layout.grouping.groups)
        return self.out_proj(out if self.gate is None else self.gate(out, x))

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{self.dim}, heads={self.heads}, dropout={self.dropout}"


def _of_groups(
    bias: Tensor | AttentionBias | None, layout: Layout, dtype: torch.dtype
) -> Sequence[Tensor | None]:
    """The bias of each group's logits, -inf at padding; computed once for layers that share it."""
    groups = layout.grouping.groups

    def compute() -> Sequence[Tensor | None]:
        if bias is not None and not isinstance(bias, Tensor):
            parts = bias.of_groups(groups)
            if isinstance(parts, DensePairs):
                return DensePairs(parts.whole.to(dtype), groups)
            return [part.to(dtype) for part in parts]
        masks = layout.padding(dtype)
        if bias is None:
            return masks
        parts = [bias[group.graphs, :, : group.size, : group.size] for group in groups]
        return [part if mask is None else part + mask for part, mask in zip(parts, masks, strict=True)]

    if isinstance(bias, Tensor) and bias.is_leaf:  # it may change in place before the next pass
        return compute()
    return layout.cached(f"attention bias in {dtype}", layout.index if bias is None else bias, compute)


class LinearAttention(PerformerAttention):
    r"""Performer attention with the ReLU feature map, φ(z) = relu(P z) + 10⁻³ and P orthogonal, fixed:

    .. math::
        \mathrm{out}_v = \sum_u \frac{\phi(q_v)^\top \phi(k_u)}{\sum_w \phi(q_v)^\top \phi(k_w)} v_u

    with u and w over the nodes of v's graph. PyG's module masks the values of padded nodes but leaves
    their keys in the sum below the fraction line (φ > 0 even for a zero row), so its result changes with the
    padding.
    Here the feature maps are taken on packed rows and padded with zeros afterwards, so padding enters neither
    sum. The width of a head, 64 whatever F, is PyG's and GraphGPS's.

    Args:
        dim: F, the width.
        heads: H, a divisor of F.
        dropout: probability with which an output is dropped in training.
        gate: ``none``, ``head`` or ``channel``, see :class:`Gate`.
    """

    def __init__(self, dim: int, heads: int, dropout: float = 0.0, gate: str = "none") -> None:
        check_heads(dim, heads)
        # The projection comes from a QR factorisation, which a model that is built without memory cannot do.
        meta = torch.get_default_device().type == "meta"
        with torch.device("cpu") if meta else nullcontext():
            super().__init__(channels=dim, heads=heads, dropout=dropout)
        self.gate = make_gate(dim, heads, heads * self.head_channels, gate)

    def forward(self, x: Tensor, layout: Layout, bias: Tensor | AttentionBias | None = None) -> Tensor:
        """Attend among packed nodes [N, F]; there are no logits that a ``bias`` could be added to."""
        if bias is not None:
            raise ConfigError(
                "gt.layer_type: Performer never forms the attention logits, so nothing can be added to them: "
                "use Transformer, or switch the attention bias off"
            )
        query, key = self._features(self.q(x)), self._features(self.k(x))  # [N, H, P]
        value = self.v(x).view(-1, self.heads, self.head_channels)
        key_sum = wide_sum(key, layout.index, layout.num_graphs)
        below = (query * key_sum[layout.index]).sum(dim=-1, keepdim=True).to(key.dtype)
        dense_query, dense_key, dense_value = (
            layout.to_dense(t).transpose(1, 2) for t in (query, key, value)
        )
        above = dense_query @ (dense_key.transpose(-2, -1) @ dense_value)  # [B, H, n, 64]
        # Divide packed rows: at padding both sums are zero, and 0/0 would reach the gradients.
        out = (layout.to_packed(above.transpose(1, 2)) / below).flatten(1)
        return self.dropout(self.attn_out(out if self.gate is None else self.gate(out, x)))

    def _features(self, rows: Tensor) -> Tensor:
        heads = rows.view(1, -1, self.heads, self.head_channels).transpose(1, 2)
        projection = self.fast_attn.projection_matrix
        return generalized_kernel(heads, projection, self.kernel).squeeze(0).transpose(0, 1)


def check_heads(dim: int, heads: int) -> None:
    """Heads split the width evenly, or the config is wrong."""
    if heads < 1 or dim % heads:
        raise ConfigError(f"gt.n_heads: {heads} heads do not divide the width gt.dim_hidden = {dim}")
