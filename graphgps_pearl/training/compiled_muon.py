"""Muon's Newton-Schulz steps in compiled code: ``compiled/muon.cpp``."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from graphgps_pearl.compiled import LANES, available, call, fields, pointer


class _Muon(ctypes.Structure):
    """``Muon`` of muon.cpp."""

    _fields_ = fields(
        (ctypes.c_int64, "count rows columns steps"),
        (ctypes.c_double, "first third fifth eps"),
        (ctypes.c_void_p, "x"),
    )


def serves(x: Tensor) -> bool:
    """Whether compiled code takes these matrices [B, a, b]."""
    lanes = LANES.get(x.dtype)
    return x.device.type == "cpu" and lanes is not None and x.size(2) % lanes == 0 and available()


def orthogonalised(x: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """:func:`graphgps_pearl.training.muon.orthogonalised`."""
    x = x.clone(memory_format=torch.contiguous_format)
    call("muon", x.dtype, _Muon(*x.shape, steps, *coefficients, eps, pointer(x)))
    return x
