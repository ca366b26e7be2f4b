"""The processes of one run, as torchrun starts them; with one process everything here is trivial."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from graphgps_pearl.errors import UserError

T = TypeVar("T")


def rank() -> int:
    """This process's number, known from the environment before any connection is made."""
    return int(os.environ.get("RANK", "0"))


def world_size() -> int:
    """How many processes share this run."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def connected() -> bool:
    """Whether there are several processes and they can talk."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def connect() -> None:
    """Connect the processes that torchrun started; with one process there is nothing to do."""
    if world_size() > 1 and not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        # The first process may prepare data for hours while the others wait.
        dist.init_process_group(backend, timeout=timedelta(hours=12))
        atexit.register(_disconnect)
        if rank() > 0:
            logging.getLogger("graphgps_pearl").setLevel(logging.WARNING)  # the first process says it


def _disconnect() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def decided_by_rank_zero(work: Callable[[], T]) -> T:
    """Do something in the first process only, and give every process its (small, plain) value.

    A user's mistake ends all of them; the first one says why.
    """
    if not connected():
        return work()
    outcome: list[Any] = [None, 0]
    mistake: UserError | None = None
    if rank() == 0:
        try:
            outcome[0] = work()
        except UserError as error:
            mistake = error
            outcome[1] = getattr(error, "code", 2)
    dist.broadcast_object_list(outcome, src=0)
    if mistake is not None:
        raise mistake
    if outcome[1]:
        raise SystemExit(outcome[1])
    return outcome[0]


def lost_process(error: Exception) -> bool:
    """Whether an error says that another process is gone."""
    return connected() and (isinstance(error, dist.DistError) or "by peer" in str(error))


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
