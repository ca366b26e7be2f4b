r"""Muon: momentum whose updates of matrices are orthogonal, with AdamW for all other parameters.

The momentum :math:`B = U \Sigma V^\top` of a weight matrix is replaced by nearly :math:`U V^\top`, so all its
directions move by as much. Five Newton-Schulz steps of degree five do it with products alone; matrices of one
shape go through them together. Updates are scaled to the size of AdamW's, so both take one learning rate
(`Liu et al. <https://arxiv.org/abs/2502.16982>`_, after `Jordan <https://kellerjordan.github.io/posts/muon>`_).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from graphgps_pearl.switches import kernels_enabled
from graphgps_pearl.training import compiled_muon

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of x, x^3 and x^5: a steep rise at zero, then 0.7 to 1.2
_STEPS = 5
_EPS = 1e-7  # least norm of a momentum that is divided by: one that has died out moves nothing
_ADAMW_SIZE = 0.2  # root mean square of an entry of AdamW's update, in learning rates


def orthogonalised(x: Tensor) -> Tensor:
    """Matrices [B, a, b], a >= b, with all singular values that are not tiny brought near one.

    >>> x = orthogonalised(torch.diag(torch.tensor([1.0, 0.5, 0.1])).unsqueeze(0))
    >>> bool(((x.diagonal(dim1=1, dim2=2) - 1).abs() < 0.35).all())
    True
    """
    if kernels_enabled() and compiled_muon.serves(x):
        return compiled_muon.orthogonalised(x, _COEFFICIENTS, _STEPS, _EPS)
    first, third, fifth = _COEFFICIENTS
    x = x / torch.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp(min=_EPS)
    for _ in range(_STEPS):
        gram = x.mT @ x
        inner = torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth)
        x = torch.baddbmm(x, x, inner, beta=first)
    return x


def matrices_of(network: nn.Module) -> list[nn.Parameter]:
    """The parameters that are linear maps: those with two dimensions, but for tables of embeddings."""
    tables = {id(m.weight) for m in network.modules() if isinstance(m, nn.Embedding)}
    return [p for p in network.parameters() if p.dim() == 2 and min(p.shape) > 1 and id(p) not in tables]


class Muon(torch.optim.Optimizer):
    """Orthogonal updates of ``matrices``, and AdamW for all ``others``.

    Args:
        matrices: parameters with two dimensions.
        others: all others.
        lr, weight_decay: of both.
        momentum: of the matrices.
    """

    def __init__(
        self,
        matrices: Sequence[nn.Parameter],
        others: Sequence[nn.Parameter],
        *,
        lr: float,
        weight_decay: float,
        momentum: float,
    ) -> None:
        kinds = ((matrices, True), (others, False))
        groups = [{"params": list(params), "orthogonal": kind} for params, kind in kinds if params]
        # "fused" is for torch: AdamW's kernel is, so a loaded "step" has to be on the device, too.
        defaults = {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "fused": True}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have a gradient."""
        loss = None if closure is None else torch.enable_grad()(closure)()
        for group in self.param_groups:
            found = [(p, p.grad) for p in group["params"] if p.grad is not None]
            if found:
                params, grads = (list(tensors) for tensors in zip(*found, strict=True))
                (self._step_matrices if group["orthogonal"] else self._step_others)(params, grads, group)
        return loss

    def _step_matrices(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> None:
        averages = [self._state(p, "momentum_buffer") for p in params]
        torch._foreach_lerp_(averages, grads, 1 - group["momentum"])
        ahead = torch._foreach_lerp(grads, averages, group["momentum"])  # Nesterov's
        torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for param, update in zip(params, ahead, strict=True):
            pair = (param, update) if param.size(0) >= param.size(1) else (param.mT, update.mT)
            by_shape[tuple(pair[0].shape)].append(pair)
        for (longer, _), pairs in by_shape.items():
            update = orthogonalised(torch.stack([update for _, update in pairs]))
            size = group["lr"] * _ADAMW_SIZE * longer**0.5  # entries of an orthogonal update: longer ** -0.5
            torch._foreach_add_([param for param, _ in pairs], list(update.unbind()), alpha=-size)

    def _step_others(self, params: list[Tensor], grads: list[Tensor], group: dict[str, Any]) -> None:
        adamw(
            params,
            grads,
            [self._state(p, "exp_avg") for p in params],
            [self._state(p, "exp_avg_sq") for p in params],
            [],
            [self._state(p, "step", _zero) for p in params],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=1e-8,
            maximize=False,
        )

    def _state(
        self, param: Tensor, name: str, first: Callable[[Tensor], Tensor] = torch.zeros_like
    ) -> Tensor:
        state = self.state[param]
        if name not in state:
            state[name] = first(param)
        return state[name]


def _zero(param: Tensor) -> Tensor:
    return torch.zeros((), device=param.device)
