"""A pretend GPU: tensors that say they are on another device, and are computed on the CPU.

It shows without a GPU what most often goes wrong on one. An operation on tensors of two devices raises, as
CUDA would (0-dim CPU tensors and CPU index tensors may take part, as there). Operations that start a kernel,
and those that make the host wait for the device, are counted by the line of the package that called them.

    with FakeGPU() as gpu:
        network, batch = gpu.copy(network), gpu.copy(batch)
        network(batch)[0].sum().backward()
    gpu.launches.total(), gpu.waits.total()

Not shown: what CUDA's own kernels compute, and time.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._foreach_utils import _foreach_supported_types
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "fakegpu"
_BACKEND = SimpleNamespace(
    is_available=lambda: True,
    is_initialized=lambda: True,
    device_count=lambda: 1,
    current_device=lambda: 0,
    _is_in_bad_fork=lambda: False,
    manual_seed_all=lambda seed: None,
    manual_seed=lambda seed: None,
    synchronize=lambda *_: None,
    get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16],
)


def _device() -> torch.device:
    """The device. It stays registered, so what uses it needs a process of its own."""
    if not hasattr(torch, NAME):
        _setup_privateuseone_for_python_backend(NAME, backend_module=_BACKEND)
        _foreach_supported_types.append(FakeTensor)  # clipping and optimisers: as for CUDA's tensors
    return torch.device(NAME, 0)


# Operations that copy between devices, and those whose index tensors may be on the CPU.
COPIES = {"_to_copy", "copy_"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
# What returns something whose size or value the host has to know first, and how often it waits for that.
WAITS = {
    "_local_scalar_dense": 1,
    "nonzero": 1,
    "equal": 1,
    "masked_select": 1,
    "_unique2": 1,
    "unique_dim": 1,
    "unique_consecutive": 1,
    "bincount": 2,
}
# What allocates or renames memory and starts no kernel.
FREE = {
    *(
        "empty",
        "empty_like",
        "new_empty",
        "empty_strided",
        "new_empty_strided",
        "detach",
        "lift_fresh",
        "alias",
    ),
    *(
        "_sparse_csr_tensor_unsafe",
        "_sparse_compressed_tensor_unsafe",
        "_reshape_alias",
        "_local_scalar_dense",
    ),
}


class MixedDevicesError(RuntimeError):
    """Tensors of two devices in one operation."""


class FakeTensor(Tensor):
    """A tensor on the pretend device; ``numbers`` are its values on the CPU."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, real: Tensor) -> FakeTensor:
        strided = real.layout is torch.strided
        made = Tensor._make_wrapper_subclass(
            cls,
            real.size(),
            strides=real.stride() if strided else torch.empty(real.shape, device="meta").stride(),
            storage_offset=real.storage_offset() if strided else 0,
            dtype=real.dtype,
            device=_device(),
        )
        made.numbers = real
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return FakeGPU.active().run(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Reads the memory without any operation."""
        FakeGPU.active().waits[_caller()] += 1
        return self.numbers.tolist()

    def __repr__(self) -> str:
        return f"FakeTensor({self.numbers!r})"


class _Attention(torch.autograd.Function):
    """torch's attention as one operation each way, as CUDA has it (its memory-efficient kernel)."""

    @staticmethod
    def forward(ctx, query, key, value, mask, dropout):  # type: ignore[no-untyped-def] # torch's signature
        given = [t for t in (query, key, value, mask) if t is not None]
        if not all(isinstance(t, FakeTensor) for t in given):
            raise MixedDevicesError(f"attention with a tensor of the CPU, at {_caller()}")
        FakeGPU.active().launches[_caller()] += 1
        reals = [t.numbers.detach().requires_grad_(t.is_floating_point()) for t in given]
        with torch.enable_grad():
            out = F.scaled_dot_product_attention(*reals[:3], *reals[3:], dropout_p=dropout)
        ctx.graph = out, reals, mask is not None
        return FakeTensor(out.detach().transpose(1, 2).contiguous().transpose(1, 2))  # strides as on CUDA

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def] # torch's signature
        FakeGPU.active().launches[_caller()] += 1
        out, reals, masked = ctx.graph
        grads = [FakeTensor(g) for g in torch.autograd.grad(out, reals, grad.numbers)]
        return *grads, *([] if masked else [None]), None


class _Construction(TorchFunctionMode):
    """torch.tensor(..., device=...) and new_tensor: made on the CPU, then copied; attention."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        device = kwargs.get("device")
        if func is F.scaled_dot_product_attention and isinstance(args[0], FakeTensor):
            return _Attention.apply(*args, kwargs.get("attn_mask"), kwargs.get("dropout_p", 0.0))
        if (
            func in (torch.tensor, torch.as_tensor)
            and device is not None
            and torch.device(device).type == NAME
        ):
            if not isinstance(args[0], FakeTensor):
                return func(*args, **{**kwargs, "device": "cpu"}).to(_device())
        elif getattr(func, "__name__", "") == "new_tensor" and isinstance(args[0], FakeTensor):
            options = {"dtype": args[0].dtype, **kwargs, "device": "cpu"}
            return torch.tensor(*args[1:], **options).to(_device())
        return func(*args, **kwargs)


class FakeGPU(TorchDispatchMode):
    """The device, for as long as the ``with`` block lasts.

    Attributes:
        launches: operations that start at least one kernel, by calling line.
        waits: times that the host waits, by calling line.
        transfers: tensors that are made on the device or copied to it, by calling line.

    Args:
        lost: a line whose transfers do not happen, as if ``device=`` or ``.to(device)`` were missing there.
    """

    _active: list[FakeGPU] = []  # noqa: RUF012 # one stack for all

    def __init__(self, lost: str | None = None) -> None:
        super().__init__()
        self.launches: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.transfers: Counter[str] = Counter()
        self.lost = lost
        self._construction = _Construction()

    @property
    def device(self) -> torch.device:
        """What ``tensor.device`` says."""
        return _device()

    @classmethod
    def active(cls) -> FakeGPU:
        """The device of the innermost block."""
        assert cls._active, "a tensor of the pretend device outside its block"
        return cls._active[-1]

    def __enter__(self) -> FakeGPU:
        self._active.append(self)
        torch.autograd.set_multithreading_enabled(False)  # the mode holds in this thread only
        self._construction.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._construction.__exit__(*error)
        torch.autograd.set_multithreading_enabled(True)
        self._active.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(func, args, kwargs or {})

    def run(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Check an operation, count it, and compute it on the CPU."""
        name = func._schema.name.removeprefix("aten::")
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        fakes = [t for t in tensors if isinstance(t, FakeTensor)]
        target = kwargs.get("device")
        here = target is None or torch.device(target).type == NAME
        if not fakes and (target is None or not here):
            return func(*args, **kwargs)  # of the CPU alone
        if not fakes:
            self._count(name, func, args, kwargs, tensors, fakes)
            made = func(*args, **{**kwargs, "device": torch.device("cpu")})
            asked = made.dim() > 0 and made.numel() > 0  # else torch's own constants
            self.transfers[_caller()] += asked
            return made if asked and _caller() == self.lost else FakeTensor(made)
        self._check(name, args, tensors, fakes)
        self._count(name, func, args, kwargs, tensors, fakes)
        options = {**kwargs, "device": torch.device("cpu")} if target is not None else kwargs
        out = func(*tree_map(_real, args), **tree_map(_real, options))
        if not here:
            return out
        written = {id(t.numbers): t for t in _written(func, args, kwargs)}

        def wrapped(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            return written[id(leaf)] if id(leaf) in written else FakeTensor(leaf)

        return tree_map(wrapped, out)

    def _check(self, name: str, args: Any, tensors: list[Tensor], fakes: list[FakeTensor]) -> None:
        if not fakes or name in COPIES:
            return
        allowed = args[1] if name in INDEXING and isinstance(args[0], FakeTensor) else ()
        for tensor in tensors:
            if isinstance(tensor, FakeTensor) or tensor.dim() == 0:
                continue
            if any(tensor is index for index in allowed):
                self.waits[_caller()] += 1  # the index is copied to the device
                continue
            raise MixedDevicesError(f"{name} with a tensor {list(tensor.shape)} of the CPU, at {_caller()}")

    def _count(
        self, name: str, func: Any, args: Any, kwargs: dict[str, Any], tensors: list[Tensor], fakes: list[Any]
    ) -> None:
        waits = WAITS.get(name, 0)
        if (
            name in COPIES
            and len({isinstance(t, FakeTensor) for t in tensors} | {_to_here(kwargs, tensors)}) > 1
        ):
            waits = not (kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2]))
        if name == "repeat_interleave" and kwargs.get("output_size") is None:
            waits = 1
        if name in INDEXING and any(t is not None and t.dtype == torch.bool for t in args[1]):
            waits = 1
        if waits:
            self.waits[_caller()] += int(waits)
        returns = func._schema.returns
        view = any(r.alias_info is not None and not r.alias_info.is_write for r in returns)
        if not view and name not in FREE:
            self.launches[_caller()] += 1

    def copy(self, thing: Any) -> Any:
        """A copy on the device of a tensor, a module or a PyG batch."""
        if isinstance(thing, nn.Module):
            thing = copy.deepcopy(thing)
            for module in thing.modules():
                for key, parameter in module._parameters.items():
                    if parameter is not None:
                        module._parameters[key] = nn.Parameter(FakeTensor(parameter.detach().clone()))
                for key, buffer in module._buffers.items():
                    if buffer is not None:
                        module._buffers[key] = FakeTensor(buffer.clone())
            return thing
        if isinstance(thing, Tensor):
            return FakeTensor(thing.clone())
        return copy.copy(thing).to(_device(), non_blocking=True)


def real(tensor: Tensor) -> Tensor:
    """The numbers of a tensor on the device."""
    assert isinstance(tensor, FakeTensor), "not on the device"
    return tensor.numbers


def _real(leaf: Any) -> Any:
    return leaf.numbers if isinstance(leaf, FakeTensor) else leaf


def _to_here(kwargs: dict[str, Any], tensors: list[Tensor]) -> bool:
    """Whether the result of a copy is on the device."""
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"]).type == NAME
    return isinstance(tensors[0], FakeTensor)


def _written(func: Any, args: Any, kwargs: dict[str, Any]) -> Iterator[FakeTensor]:
    """The arguments that the operation writes to: what it returns of them is the argument itself."""
    for number, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = kwargs.get(argument.name) if argument.kwarg_only or number >= len(args) else args[number]
            yield from (t for t in tree_leaves(value) if isinstance(t, FakeTensor))


def _caller() -> str:
    """The innermost line of the package on the stack, as ``pearl/graphs.py:76``."""
    frame = sys._getframe(1)
    while frame is not None:
        _, found, file = frame.f_code.co_filename.rpartition("/graphgps_pearl/")
        if found:
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "elsewhere"


def same_on_both(
    module: nn.Module, run: Callable[[nn.Module, Any], Tensor], batch: Any, tolerance: float = 1e-9
) -> FakeGPU:
    """The tensor ``run(module, batch)`` and the gradients of its square are equal on CPU and device."""
    results = []
    gpu = FakeGPU()
    for on_gpu in (False, True):
        torch.manual_seed(0)
        if on_gpu:
            with gpu:
                own = gpu.copy(module)
                out = run(own, gpu.copy(batch))
                out.square().sum().backward()
                gradients = [None if p.grad is None else real(p.grad) for p in own.parameters()]
                results.append([real(out.detach()), *gradients])
        else:
            own = copy.deepcopy(module)
            out = run(own, copy.copy(batch))
            out.square().sum().backward()
            results.append([out.detach(), *(p.grad for p in own.parameters())])
    for ours, theirs in zip(*results, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(theirs, ours, rtol=tolerance, atol=tolerance)
    return gpu
