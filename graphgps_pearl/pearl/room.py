"""Memory for rows that is used again: what one step gave back, the next one takes.

Torch gives large tensors on a CPU back to the operating system, and takes them from it again in the next
step. Every page of 4 kB then has to be mapped and zeroed, which costs as much as several passes over it.
Here a tensor's memory goes to a shelf when the last tensor that sees it is gone, and the next tensor of about
that size takes it from there.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict

import torch
from torch import Tensor

_LEAST, _MOST = 2**18, 2**26  # bytes of a tensor for which this is done
_KEPT = 2**30  # bytes on the shelf
_ALIGNED = 64

_Memory = tuple[bytearray, int]  # and where in it an aligned tensor begins

_shelf: dict[int, list[_Memory]] = defaultdict(list)


def empty(*shape: int, like: Tensor) -> Tensor:
    """A tensor with the dtype of ``like`` that holds anything.

    >>> empty(3, 2, like=torch.ones(1)).shape
    torch.Size([3, 2])
    """
    needed = math.prod(shape) * like.element_size()
    if like.device.type != "cpu" or not _LEAST <= needed <= _MOST:
        return like.new_empty(shape)
    size = _rounded(needed + _ALIGNED)
    memory = _take(size)
    seen = memoryview(memory[0])  # torch holds on to this object for as long as it uses the memory
    weakref.finalize(seen, _put_back, memory).atexit = False
    return torch.frombuffer(seen, dtype=like.dtype, count=math.prod(shape), offset=memory[1]).view(shape)


def _take(size: int) -> _Memory:
    try:
        return _shelf[size].pop()
    except IndexError:  # asked for forgiveness: another thread may take the last one in between
        memory = bytearray(size)
        return memory, -torch.frombuffer(memory, dtype=torch.uint8).data_ptr() % _ALIGNED


def _put_back(memory: _Memory) -> None:
    size = len(memory[0])
    if sum(each * len(kept) for each, kept in _shelf.items()) + size <= _KEPT:
        _shelf[size].append(memory)


def _rounded(size: int) -> int:
    """Up to the next of eight steps between powers of two, so that batches of similar size share."""
    step = 1 << max(size.bit_length() - 4, 0)
    return -(-size // step) * step
