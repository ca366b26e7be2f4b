"""What encoders give to networks and loaders to both, in types that all sides import.

An encoding computes an :class:`EncoderOutput`. The GraphGym encoders hand it over on the batch, by
:meth:`EncoderOutput.attach`; networks read it with :meth:`EncoderOutput.of`. :class:`Prepared` is what a
network has computed from the bare graphs of a batch before the batch reached the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.packing import Packed, pack

_ATTRIBUTE = "encoder_output"
_PREPARED = "prepared"


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

    def of_groups(self, groups: Sequence[Group]) -> Sequence[Tensor]:
        """For each group [B_g, H or 1, n_g, n_g] by (graph, head, query, key), -inf at padded keys."""


@runtime_checkable
class UpdatedBias(AttentionBias, Protocol):
    """An :class:`AttentionBias` that learns from the attention of its layer, for the layers after it."""

    def update(self, x: Tensor, qkv: Tensor, groups: Sequence[Group]) -> None:
        """Read the attention's input [N, F] and its queries, keys and values [N, 3 F']."""


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

    @classmethod
    def map_per_layer(cls, batch: Any, function: Callable[[Tensor], Tensor]) -> None:
        """Replace ``per_layer`` of a batch, if there is one, by a function of it."""
        given = cls.of(batch)
        if given.per_layer is not None:
            batch[_ATTRIBUTE] = replace(given, per_layer=function(given.per_layer))

    def bias_of_layer(self, layer: int) -> Tensor | AttentionBias | None:
        """The attention bias of a layer, counted from 0."""
        if not self.attention_bias:
            return None
        return self.attention_bias[layer if len(self.attention_bias) > 1 else 0]


class Prepared:
    """What the modules of a network compute from the bare graphs of a batch: indices and sizes, no weights.

    The loader has it made on the CPU, and it travels with the batch as ``batch.prepared``. A GPU then neither
    does integer work nor has the host wait for sizes. A batch without it works too: modules compute what they
    miss. Between processes and devices it is one buffer.

    >>> prepared = Prepared({"sizes": torch.tensor([2, 3])})
    >>> prepared.to("cpu") is prepared, prepared.get("sizes").tolist(), prepared.get("layout")
    (True, [2, 3], None)
    """

    def __init__(self, parts: dict[str, Any] | None = None, packed: Packed | None = None) -> None:
        self._parts, self._packed = parts, packed

    @classmethod
    def of(cls, batch: Any) -> Prepared:
        """That of a batch; empty where there is none."""
        return batch[_PREPARED] if _PREPARED in batch else cls({})

    def attach(self, batch: Any) -> None:
        """Let it travel with the batch."""
        batch[_PREPARED] = self

    def get(self, name: str) -> Any:
        """A part, or None."""
        if self._parts is None:
            assert self._packed is not None
            self._parts = self._packed.unpack()
        return self._parts.get(name)

    def set(self, name: str, part: Any) -> None:
        """Add a part."""
        assert self._parts is not None and self._packed is None, "parts are added where they are computed"
        self._parts[name] = part

    def to(self, device: Any, non_blocking: bool = False) -> Prepared:
        """The same on another device."""
        if torch.device(device).type == "cpu":  # it is made there, and nothing brings it back
            return self
        return Prepared(packed=self._pack().to(device, non_blocking))

    def pin_memory(self) -> Prepared:
        """The same in pinned memory."""
        return Prepared(packed=self._pack().pin_memory())

    def __reduce__(self) -> tuple[Any, ...]:
        return Prepared, (None, self._pack())

    def _pack(self) -> Packed:
        return pack(self._parts) if self._packed is None else self._packed


@runtime_checkable
class PreparesBatch(Protocol):
    """A module that computes something from the bare graphs of a batch."""

    def prepare_batch(self, batch: Any, prepared: Prepared) -> None:
        """Add to ``prepared``, which has the ``layout`` of the batch already."""


def _both(a: Tensor | None, b: Tensor | None, combine: Callable[[Tensor, Tensor], Tensor]) -> Tensor | None:
    return b if a is None else a if b is None else combine(a, b)
