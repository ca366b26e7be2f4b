r"""How much memory the largest batch may take, found out before the first batch, and what to do without it.

What a network keeps for its backward pass is counted on the largest graph alone. With :math:`n_1` nodes and
:math:`m_1` edges it keeps :math:`B_1 = a + b n_1 + c n_1^2 + d m_1` bytes, the square being attention or
B-PEARL's pairs; as :math:`n^2 \le n\, n_1`, a batch keeps at most about

.. math::
    B \le B_1 \frac{\sum_i n_i}{n_1} \max\Big(1, \max_i \frac{m_i / n_i}{m_1 / n_1}\Big)

and a little more where attention pads graphs to one size.
"""

from __future__ import annotations

import copy
import ctypes
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from graphgps_pearl.compiled import keep_buffers, release_buffers
from graphgps_pearl.data import GraphLoader
from graphgps_pearl.memory import free_bytes, megabytes

log = logging.getLogger(__name__)

# What a step keeps on a GPU for each byte on a CPU, whose kernels keep less: counted on a pretend
# device as 1.5 (ZINC) to 1.9 (Peptides, where few groups of attention have more padding).
GPU_FACTOR = 2
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h

KNOBS = (
    "lower train.batch_size (with optim.batch_accumulation the steps stay as large), bound "
    "train.sampler_max_nodes or train.sampler_max_pairs, or set posenc_RPEARL.chunk_size"
)


@dataclass(frozen=True)
class LargestBatch:
    """The largest batch that can occur, and the bytes that the network may keep for it."""

    graphs: int
    nodes: int
    pairs: int
    largest_graph: int
    num_bytes: int

    def lines(self) -> tuple[str, str]:
        """For people; two lines, since terminals have 80 columns."""
        return (
            f"largest batch: {self.graphs} graphs, {self.nodes:,} nodes, {self.pairs:,} node pairs",
            f"largest graph: {self.largest_graph:,} nodes; memory of a training step: at most about "
            f"{megabytes(self.num_bytes)}",
        )


def largest_batch(loader: GraphLoader, network: nn.Module, device: str = "cpu") -> LargestBatch:
    """What the largest batch of a process can be, by the graphs' sizes and the loader's bounds."""
    order, bounds = loader.sampler, loader.sampler.bounds
    share = -(-order.batch_size // order.world_size)
    indices = sorted(range(len(order.sizes)), key=lambda i: -int(order.sizes[i]))[:share]
    sizes = [int(order.sizes[i]) for i in indices]
    nodes, pairs = sum(sizes), sum(size * size for size in sizes)
    # A graph above a bound is a batch of its own.
    if bounds.max_nodes:
        nodes = min(nodes, max(bounds.max_nodes, sizes[0]))
    if bounds.max_pairs:
        pairs = min(pairs, max(bounds.max_pairs, sizes[0] ** 2))
    density = [loader.dataset[i].num_edges / max(size, 1) for i, size in zip(indices, sizes, strict=True)]
    denser = max(density) / density[0] if density[0] else 1.0
    kept = kept_bytes(network, [loader.dataset[indices[0]]]) * (GPU_FACTOR if device == "gpu" else 1)
    return LargestBatch(len(sizes), nodes, pairs, sizes[0], int(kept * nodes / max(sizes[0], 1) * denser))


def kept_bytes(network: nn.Module, graphs: Sequence[Data]) -> int:
    """Bytes that a training step on these graphs keeps for its backward pass; the network stays as it is."""
    seen: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        seen[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)  # else the next one could have the same address
        return tensor

    alive: list[Tensor] = []
    probe = copy.deepcopy(network).train()
    with torch.random.fork_rng(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        pred, _ = probe(Batch.from_data_list(list(graphs)))
        del pred
    own = {p.untyped_storage().data_ptr() for p in probe.parameters()}
    return sum(size for address, size in seen.items() if address not in own)


def keep_freed_memory() -> None:
    """Have the C library keep what tensors give back, up to a gigabyte, for the next step to take.

    By default it returns large pieces to the operating system, which then maps and clears every page anew: a
    tenth of a training step of B-PEARL, nearly half of one on peptides. It keeps none above 32 MB, so the
    compiled kernels keep theirs. It concerns the whole process, so a library must not do it; a training run
    may. Elsewhere than on Linux with glibc the C library is left alone.
    """
    keep_buffers()
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_M_MMAP_THRESHOLD, 2**25)  # the most that glibc accepts
    mallopt(_M_TRIM_THRESHOLD, 2**30)


class ReleaseBuffers(pl.Callback):
    """Returns what the kernels of training keep before an evaluation, which has tensors of its own, and at
    the end."""

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Return it."""
        release_buffers()

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Return it."""
        release_buffers()


def report_largest_batch(loader: GraphLoader, network: nn.Module, device: str) -> None:
    """Say before training how large a batch can get, and warn where memory may not do."""
    batch, free = largest_batch(loader, network, device), free_bytes(device)
    for line in batch.lines():
        log.info(line)
    if free is not None and batch.num_bytes > 0.8 * free:
        log.warning("that may be too much, %s are free: %s", megabytes(free), KNOBS)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out, of a GPU or of the machine."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def describe_batch(batch: Any) -> str:
    """A batch's size, as far as it is known."""
    if not isinstance(batch, Batch):
        return "the batch"
    sizes = batch.ptr.diff()
    return f"{len(sizes)} graphs, {int(sizes.sum()):,} nodes, largest graph {int(sizes.max()):,} nodes"
