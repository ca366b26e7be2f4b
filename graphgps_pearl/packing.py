"""Objects that hold many tensors, moved as one: all their bytes in one buffer.

A copy to a GPU, pinned memory and a message from a worker process each have a price for every tensor. An
object is taken apart by pickle, which knows shared references: a tensor that occurs twice is stored once, and
what is put together again shares it as before.
"""

from __future__ import annotations

import io
import pickle
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

_ALIGNMENT = 16  # bytes: a view as another type has to begin at a multiple of its size


@dataclass(frozen=True)
class Packed:
    """An object without its tensors, and these in one buffer."""

    skeleton: bytes
    layout: list[tuple[torch.dtype, torch.Size, int]]  # of each tensor: where its bytes begin
    buffer: Tensor  # [bytes]

    def to(self, device: Any, non_blocking: bool = False) -> Packed:
        """The same on another device, by one copy."""
        return replace(self, buffer=self.buffer.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Packed:
        """The same in memory that a GPU can read while the host goes on."""
        return replace(self, buffer=self.buffer.pin_memory())

    def unpack(self) -> Any:
        """The object; its tensors are views of the buffer."""
        tensors = []
        for dtype, shape, start in self.layout:
            part = self.buffer[start : start + shape.numel() * dtype.itemsize]
            tensors.append(part.view(dtype).view(shape))
        unpickler = pickle.Unpickler(io.BytesIO(self.skeleton))
        unpickler.persistent_load = tensors.__getitem__  # type: ignore[method-assign] # as pickle documents
        return unpickler.load()


def pack(thing: Any) -> Packed:
    """Take apart an object whose tensors are on the CPU and need no gradient.

    >>> x = torch.arange(3)
    >>> a, b, c = pack((x, x, {"half": torch.tensor([0.5])})).unpack()
    >>> a is b, a.tolist(), c["half"].tolist()
    (True, [0, 1, 2], [0.5])
    """
    found: dict[int, int] = {}
    tensors: list[Tensor] = []

    def number(part: Any) -> int | None:
        if not isinstance(part, Tensor):
            return None
        if id(part) not in found:
            found[id(part)] = len(tensors)
            tensors.append(part)
        return found[id(part)]

    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.persistent_id = number  # type: ignore[method-assign] # as pickle documents
    pickler.dump(thing)
    layout, size = [], 0
    for tensor in tensors:
        layout.append((tensor.dtype, tensor.shape, size))
        size += -(-tensor.numel() * tensor.dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
    buffer = torch.empty(size, dtype=torch.uint8)
    for tensor, (dtype, shape, start) in zip(tensors, layout, strict=True):
        end = start + shape.numel() * dtype.itemsize
        buffer[start:end].view(dtype).view(shape).copy_(tensor)
    return Packed(stream.getvalue(), layout, buffer)
