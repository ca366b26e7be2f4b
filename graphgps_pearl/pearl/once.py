"""Backward passes that are written by hand have first derivatives only, and say so."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch


def first_derivatives(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a backward pass that is to be differentiated again.

    torch's ``once_differentiable`` raises only where the way back leads through the given gradient; a
    second derivative by a weight does not, and would silently lack a term.
    """

    @functools.wraps(backward)
    def checked(*arguments: Any) -> Any:
        if torch.is_grad_enabled():  # create_graph=True
            raise RuntimeError(
                "PEARL has no second derivatives with this norm and activation; they exist with norm='none', "
                "and with norm='layer' and another activation than relu"
            )
        return backward(*arguments)

    return checked
