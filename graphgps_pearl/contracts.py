"""What encoders give to networks, in types that both sides import.

An encoding computes an :class:`EncoderOutput`. The GraphGym encoders hand it over on the batch, by
:meth:`EncoderOutput.attach`; networks read it with :meth:`EncoderOutput.of`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from graphgps_pearl.errors import ConfigError

_ATTRIBUTE = "encoder_output"


@dataclass(frozen=True)
class Group:
    """Some graphs of a batch in dense form, padded to a common size.

    Attributes:
        graphs: [B_g] which graphs.
        size: n_g, the largest of them.
        nodes: [B_g·n_g] gather index: the packed node of each dense row. Padding repeats the graph's first.
        mask: [B_g, 1, 1, n_g], True at nodes, or None where nothing is padded.
    """

    graphs: Tensor
    size: int
    nodes: Tensor
    mask: Tensor | None

    def padding(self, dtype: torch.dtype) -> Tensor | None:
        """The mask as a bias of the logits, [B_g, 1, 1, n_g]: zero at nodes and -inf at padding, or None."""
        if self.mask is None:
            return None
        zeros = torch.zeros(self.mask.shape, dtype=dtype, device=self.mask.device)
        return zeros.masked_fill(~self.mask, -math.inf)


class AttentionBias(Protocol):
    """A bias of the attention logits that is made group by group, never for the whole padded batch."""

    def of_groups(self, groups: Sequence[Group]) -> list[Tensor]:
        """For each group [B_g, H or 1, n_g, n_g] by (graph, head, query, key), -inf at padded keys."""


@dataclass(frozen=True)
class EncoderOutput:
    """What an encoding, or several together, give to a network.

    Attributes:
        nodes: [N, C] columns for ``batch.x``.
        per_layer: [N, D], of which every layer adds a projection to its input.
        edges: [E, D_e], added to the edge features.
        attention_bias: of the attention's logits (query, key). One entry for all layers, or one for each,
            [B, H or 1, n, n] or an :class:`AttentionBias`; empty = none.
    """

    nodes: Tensor | None = None
    per_layer: Tensor | None = None
    edges: Tensor | None = None
    attention_bias: Sequence[Tensor | AttentionBias] = ()

    @classmethod
    def of(cls, batch: Any) -> EncoderOutput:
        """What the encodings of a batch have given so far."""
        return batch[_ATTRIBUTE] if _ATTRIBUTE in batch else cls()

    def attach(self, batch: Any) -> None:
        """Append the node columns to ``batch.x``, and add the rest to what other encodings have attached."""
        if self.nodes is not None:
            batch.x = torch.cat([batch.x, self.nodes], dim=1)
        if self.per_layer is None and self.edges is None and not self.attention_bias:
            return  # nothing that only our networks read
        before = self.of(batch)
        if before.attention_bias and self.attention_bias:
            raise ConfigError("two encodings give an attention bias, and the layers take one")
        batch[_ATTRIBUTE] = EncoderOutput(
            per_layer=_both(before.per_layer, self.per_layer, lambda a, b: torch.cat([a, b], dim=1)),
            edges=_both(before.edges, self.edges, torch.add),
            attention_bias=before.attention_bias or self.attention_bias,
        )

    def bias_of_layer(self, layer: int) -> Tensor | AttentionBias | None:
        """The attention bias of a layer, counted from 0."""
        if not self.attention_bias:
            return None
        return self.attention_bias[layer if len(self.attention_bias) > 1 else 0]


def _both(a: Tensor | None, b: Tensor | None, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor | None:
    return b if a is None else a if b is None else combine(a, b)
