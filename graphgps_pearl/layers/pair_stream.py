r"""Pairs of nodes as a stream of their own, which biases the attention and learns from it.

`GRIT <https://arxiv.org/abs/2305.17589>`_ updates the features of all pairs in every layer. Here the stream
has C channels, few enough that all pairs of molecules are cheap. For query v and key m of layer l, with the
input X of the attention and its scaled products :math:`s_{vm} = Q_v K_m^\top / \sqrt{d}` of the H heads,

.. math::
    Z^0_{vm} &= \Phi(G, e_m)_v W + \Phi(G, e_v)_m W' \\
    B^l_{vm} &= Z^l_{vm} U_l \\
    Z^{l+1}_{vm} &= Z^l_{vm} + \mathrm{relu}(Z^l_{vm} A_l + s_{vm} S_l + X_v P_l + X_m R_l + b_l) O_l

and :math:`B^l` is added to the logits. U and O start at zero: training begins without a bias and with a
stream that stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from graphgps_pearl.contracts import Group
from graphgps_pearl.layers.grouping import DensePairs
from graphgps_pearl.layers.linear import Linear
from graphgps_pearl.layers.pair_bias import PairIndex, index_of, joined, projected
from graphgps_pearl.pearl import PairEncoding


class PairStream(nn.Module):
    """The weights of the stream.

    Args:
        dim: D, columns of the pairs.
        heads: H.
        layers: of the network.
        node_dim: F, the width of the nodes.
        width: C, the channels of the stream.
    """

    def __init__(self, dim: int, heads: int, layers: int, node_dim: int, width: int) -> None:
        super().__init__()
        self.dim, self.heads, self.layers, self.width = dim, heads, layers, width
        self.weight = nn.Parameter(torch.empty(dim, 2 * width))  # W, then W'
        nn.init.xavier_uniform_(self.weight)
        self.bias = nn.Parameter(torch.zeros(layers, heads, width))  # U
        self.updates = nn.ModuleList(_Update(node_dim, heads, width) for _ in range(layers - 1))

    def forward(self, pairs: PairEncoding, index: PairIndex | None = None) -> list[StreamBias]:
        """The bias of each layer; ``index`` where it is known already."""
        state = _State(self, pairs, index)
        return [StreamBias(state, layer) for layer in range(self.layers)]

    def update_of(self, layer: int) -> _Update:
        """The weights that update the stream after a layer."""
        update = self.updates[layer]
        assert isinstance(update, _Update)
        return update

    def extra_repr(self) -> str:
        """Shown by ``print(model)``."""
        return f"{self.dim}, heads={self.heads}, layers={self.layers}, width={self.width}"


class _Update(nn.Module):
    def __init__(self, node_dim: int, heads: int, width: int) -> None:
        super().__init__()
        self.inner = nn.Parameter(torch.empty(width, width + heads))  # A, then S
        nn.init.xavier_uniform_(self.inner)
        self.nodes = Linear(node_dim, 2 * width)  # P, then R; b is both biases
        self.out = nn.Parameter(torch.zeros(width, width))  # O

    def forward(self, stream: Tensor, products: Tensor, ends: Tensor) -> Tensor:
        """Stream [C, D], products [H, D] and terms of the nodes [C, D] to the next stream [C, D]."""
        inner = torch.addmm(ends, self.inner, torch.cat([stream, products]))
        return torch.addmm(stream, self.out, inner.relu())


class _State:
    """The stream on its way through the layers of one pass."""

    def __init__(self, weights: PairStream, pairs: PairEncoding, index: PairIndex | None) -> None:
        self.weights, self._pairs, self._index = weights, pairs, index
        self.stream: Tensor | None = None  # [C, D], the dense pairs of all groups one after the other
        self.padding: Tensor | None = None  # [D]

    def start(self, groups: Sequence[Group]) -> Tensor:
        index = index_of(self._pairs, groups, self._index)
        self.padding = index.padding
        projection = joined(self.weights.weight, self._pairs.readout)
        return projected(self._pairs, projection, index, masked=False)


class StreamBias:
    """The bias of one layer; an :class:`~graphgps_pearl.contracts.AttentionBias` that attention updates."""

    def __init__(self, state: _State, layer: int) -> None:
        self._state, self._layer = state, layer

    def of_groups(self, groups: Sequence[Group]) -> Sequence[Tensor]:
        """For each group [B_g, H, n_g, n_g] by (graph, head, query, key), -inf at padded keys."""
        state = self._state
        if not groups:
            return []
        if self._layer == 0:
            state.stream = state.start(groups)
        assert state.stream is not None and state.padding is not None, "layers run in their order"
        return DensePairs(state.weights.bias[self._layer] @ state.stream + state.padding, groups)

    def update(self, x: Tensor, qkv: Tensor, groups: Sequence[Group]) -> None:
        """Let the stream learn from the attention of its layer.

        Args:
            x: [N, F], the attention's input.
            qkv: [N, 3 F'], its queries, keys and values.
            groups: of the graphs.
        """
        state = self._state
        if not groups or self._layer == state.weights.layers - 1:  # nothing reads the stream any more
            return
        assert state.stream is not None, "layers run in their order"
        update, heads = state.weights.update_of(self._layer), state.weights.heads
        width = qkv.size(1) // 3
        both, ends = qkv[:, : 2 * width], update.nodes(x)
        products, terms = [], []
        for group in groups:
            rows = both.index_select(0, group.nodes).view(-1, group.size, 2, heads, width // heads)
            query, key = rows.permute(2, 3, 0, 1, 4).unbind(0)  # each [H, B_g, n_g, d]
            products.append((query @ key.transpose(-2, -1)).flatten(1) * (width // heads) ** -0.5)
            v, m = ends.index_select(0, group.nodes).view(-1, group.size, ends.size(1)).chunk(2, dim=-1)
            term = v.permute(2, 0, 1).unsqueeze(3) + m.permute(2, 0, 1).unsqueeze(2)  # [C, B_g, n_g, n_g]
            terms.append(term.flatten(1))
        state.stream = update(state.stream, torch.cat(products, dim=1), torch.cat(terms, dim=1))
