"""A GPS network from plain modules: no config, no GraphGym."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from graphgps_pearl.contracts import EncoderOutput
from graphgps_pearl.layers import Layout
from graphgps_pearl.networks.heads import GraphHead
from graphgps_pearl.networks.network import GraphNetwork


class InputEncoder(nn.Module):
    """Node features, a positional encoding and edge features to the input of the layers; see :class:`GPS`."""

    def __init__(
        self,
        node_encoder: nn.Module | None,
        edge_encoder: nn.Module | None,
        encoding: nn.Module | None,
        pair_bias: nn.Module | None,
        pair_edges: nn.Module | None,
    ) -> None:
        super().__init__()
        if encoding is None and (pair_bias is not None or pair_edges is not None):
            raise ValueError("pair_bias and pair_edges project the pairs of an encoding, and there is none")
        self.node_encoder, self.encoding = node_encoder, encoding
        self.pair_bias, self.pair_edges, self.edge_encoder = pair_bias, pair_edges, edge_encoder

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, index: Tensor
    ) -> tuple[EncoderOutput, Tensor, Tensor | None]:
        """Raw features to what encodings give, nodes [N, F] and edges [E, D]."""
        h = x if self.node_encoder is None else self.node_encoder(x)
        edges = edge_attr if self.edge_encoder is None else self.edge_encoder(edge_attr)
        given = EncoderOutput()
        if self.encoding is not None:
            given = self._encode(edge_index, index)
            assert given.nodes is not None
            h = torch.cat([h, given.nodes], dim=1)
            if given.edges is not None:
                edges = given.edges if edges is None else edges + given.edges
        return given, h, edges

    def _encode(self, edge_index: Tensor, index: Tensor) -> EncoderOutput:
        assert self.encoding is not None
        out = self.encoding(edge_index, index, index.numel())
        if isinstance(out, Tensor):
            if self.pair_bias is not None or self.pair_edges is not None:
                raise ValueError("pair_bias and pair_edges need BPEARL(..., return_pairs=True)")
            return EncoderOutput(nodes=out)
        pe, pairs = out
        return EncoderOutput(
            nodes=pe,
            edges=None if self.pair_edges is None else self.pair_edges(pairs.of_edges(edge_index)),
            attention_bias=() if self.pair_bias is None else self.pair_bias(pairs),
        )


class GPS(GraphNetwork):
    """A GPS network for predictions of whole graphs.

    Args:
        layers: :class:`~graphgps_pearl.layers.gps_layer.GPSLayer`, or modules that are called like one.
        head: pooling and MLP.
        node_encoder: node features to [N, F - C]; None = they have that width already.
        edge_encoder: edge features to [E, D]; None = they are used as they are.
        encoding: the positional encoding, called as ``encoding(edge_index, batch, num_nodes)``: [N, C], which
            is appended to the nodes. BPEARL with ``return_pairs=True`` gives its pairs too.
        pair_bias: the pairs to a bias of the attention, a
            :class:`~graphgps_pearl.layers.pair_bias.PairBiasProjection`.
        pair_edges: the pairs of the edges [E, C] to [E, D], added to the edge features.
    """

    def __init__(
        self,
        layers: Iterable[nn.Module],
        head: GraphHead,
        node_encoder: nn.Module | None = None,
        edge_encoder: nn.Module | None = None,
        encoding: nn.Module | None = None,
        pair_bias: nn.Module | None = None,
        pair_edges: nn.Module | None = None,
    ) -> None:
        super().__init__(
            InputEncoder(node_encoder, edge_encoder, encoding, pair_bias, pair_edges), layers, head
        )

    def forward(  # type: ignore[override] # tensors, not a batch
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        num_graphs: int | None = None,
    ) -> Tensor:
        """Predict.

        Args:
            x: raw node features of all graphs, N rows.
            edge_index: [2, E].
            edge_attr: raw edge features, E rows.
            batch: [N] the graph of each node, ascending; None = one graph.
            num_graphs: B, where graphs at the end may have no nodes.

        Returns:
            [B, dim_out].
        """
        index = edge_index.new_zeros(x.size(0)) if batch is None else batch
        layout = Layout.of(index, num_graphs)
        given, h, edges = self.encoder(x, edge_index, edge_attr, index)
        h, _ = self.run_layers(h, edge_index, edges, layout, given)
        head: Any = self.post_mp
        return head.predict(h, index, layout.num_graphs)
