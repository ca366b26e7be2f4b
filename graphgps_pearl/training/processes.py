"""The processes of one run, as torchrun starts them; with one process everything here is trivial."""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def rank() -> int:
    """This process's number, known from the environment before any connection is made."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """How many processes share this run."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def connected() -> bool:
    """Whether there are several processes and they can talk."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def gather(value: Any) -> list[Any]:
    """Every process's value, by rank."""
    if not connected():
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def largest(*numbers: int) -> list[int]:
    """The largest of every process's numbers, one by one."""
    if not connected():
        return list(numbers)
    tensor = torch.tensor(numbers)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.tolist()


def total(value: Tensor) -> Tensor:
    """The sum of every process's tensor; no gradient."""
    if not connected():
        return value
    value = value.detach().clone()
    dist.all_reduce(value)
    return value
