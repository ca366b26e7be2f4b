"""Sums of many rows in bfloat16 or float16, which are exact enough on a CPU and not on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

SUMS = {"index_add", "index_add_", "scatter_add", "scatter_add_"}


class RefuseHalfSums(TorchDispatchMode):
    """Raises where rows are added up in half precision: CUDA rounds after every row, so that a sum of ones
    stays at 256 in bfloat16. A CPU rounds once, at the end."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        target = args[0] if args else None
        if func.__name__.partition(".")[0] in SUMS and isinstance(target, Tensor):
            assert target.dtype not in (torch.bfloat16, torch.float16), f"{func} in {target.dtype}"
        return func(*args, **(kwargs or {}))
