r"""R-PEARL on one graph of any size, exactly, in memory that does not grow with the samples.

In evaluation every part of Φ but the sums over neighbours acts on one row alone. So the layers are computed
one after the other for all nodes, block of nodes by block, from what the layer before left in a file:

.. math:: X_{l+1}[block] = f_l(X_l[block], (A X_l)[block])

Signals are a hash of (node, sample) and are made when they are read. The files are memory-mapped: what fits
stays in memory, the rest on the disk. Several processes (torchrun) share the files, each computes its own
nodes, and they meet after every layer; the result is the same to the last bit.

Bytes, for N nodes, E directed edges, width F, c samples at a time, D columns: edges 4 E + 8 N, rows 8 c F N
(two layers), sums 4 D N (8 or 12 D N for var, std, max). Time is linear in N + E, samples and layers.
"""

from __future__ import annotations

import copy
import logging
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor, nn

from graphgps_pearl.errors import DataError, UserError
from graphgps_pearl.files import is_full
from graphgps_pearl.pearl import RPEARL
from graphgps_pearl.pearl.checks import check_range
from graphgps_pearl.pearl.operators import SHIFTS, degree_power, powers_grow
from graphgps_pearl.pearl.phi import GINLayer, Layer, TapLayer
from graphgps_pearl.pearl.signals import draw_samples, make_key
from graphgps_pearl.pearl.statistics import Moments, merge_moments, sample_moments, statistics

log = logging.getLogger(__name__)

_EDGES = 1 << 22  # read at a time


@dataclass(frozen=True)
class Part:
    """Which of several processes this is, and how they meet."""

    rank: int = 0
    world_size: int = 1

    def meet(self) -> None:
        """Wait until all have come so far."""
        if self.world_size > 1:
            torch.distributed.barrier()

    def blocks(self, num_nodes: int, size: int) -> Iterator[slice]:
        """This process's blocks of nodes; which blocks there are does not depend on the processes."""
        starts = range(0, num_nodes, size)
        first, last = (len(starts) * i // self.world_size for i in (self.rank, self.rank + 1))
        for start in starts[first:last]:
            yield slice(start, min(start + size, num_nodes))


def _create(file: Path, shape: tuple[int, ...], dtype: Any) -> None:
    """An array of zeros in a file. Its space is reserved: on a full disk, writing to the memory that a file
    is mapped to ends the process (SIGBUS) instead of raising an error."""
    np.lib.format.open_memmap(file, mode="w+", dtype=dtype, shape=shape).flush()
    if hasattr(os, "posix_fallocate"):
        with file.open("r+b") as stream:
            try:
                os.posix_fallocate(stream.fileno(), 0, file.stat().st_size)
            except OSError as error:
                if is_full(error):  # else the file system cannot reserve space
                    raise OSError(error.errno, error.strerror, str(file)) from error


class Scratch:
    """Arrays in files of one folder, shared by all processes."""

    def __init__(self, folder: Path, part: Part) -> None:
        self.folder, self.part = folder, part
        self._held: dict[tuple[str, tuple[int, ...]], NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any = np.float32) -> NDArray[Any]:
        """A memory-mapped array of this name and shape, as it was left, at first of zeros; the first process
        makes it and the others open it."""
        if (name, shape) not in self._held:
            file = self.folder / f"{name}-{'x'.join(map(str, shape))}.npy"
            if self.part.rank == 0:
                _create(file, shape, dtype)
            self.part.meet()
            self._held[name, shape] = np.lib.format.open_memmap(file, mode="r+")
        return self._held[name, shape]


@dataclass(frozen=True)
class Neighbours:
    """Incoming edges by node (compressed rows), and both degrees."""

    starts: NDArray[np.int64]  # [N + 1]
    sources: NDArray[np.int32]  # [E]
    out_degree: NDArray[np.float32]  # [N]

    def rows(self, block: slice) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Starts [n + 1] and sources of a block's edges."""
        starts = self.starts[block.start : block.stop + 1]
        return starts - starts[0], self.sources[starts[0] : starts[-1]]

    def sums(self, x: NDArray[np.float32], block: slice, weight: NDArray[np.float32] | None = None) -> Tensor:
        """Sums over the sources of x [N, C], each times its weight [N], for the nodes of a block: [n, C]."""
        starts, sources = self.rows(block)
        values = np.ones(len(sources), np.float32) if weight is None else weight[sources]
        matrix = sparse.csr_matrix((values, sources, starts), shape=(len(starts) - 1, len(x)), copy=False)
        return torch.from_numpy(matrix @ np.asarray(x))


def read_edges(file: Path) -> NDArray[Any]:
    """A memory-mapped array of whole numbers, [2, E] or [E, 2], as [2, E]."""
    try:
        edges = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{file}: is no .npy array ({error})") from error
    if not isinstance(edges, np.ndarray):
        edges.close()
        raise DataError(f"{file}: is no .npy array but an archive of several; save the edges alone")
    if edges.ndim != 2 or 2 not in edges.shape or edges.dtype.kind not in "iu":
        raise DataError(f"{file}: {edges.dtype} {list(edges.shape)}, not whole numbers [2, E] or [E, 2]")
    return edges if edges.shape[0] == 2 else edges.T


def count_nodes(edges: NDArray[Any]) -> int:
    """One more than the largest node."""
    if not edges.shape[1]:
        raise DataError("there are no edges; --num-nodes N says how many nodes the graph has")
    largest = max(int(edges[:, i : i + _EDGES].max()) for i in range(0, edges.shape[1], _EDGES))
    return max(1 + largest, 0)  # negative ones are refused where all edges are read


def group_edges(edges: NDArray[Any], num_nodes: int, undirected: bool, scratch: Scratch) -> Neighbours:
    """Sort the edges by target into files; with ``undirected`` every edge counts in both directions."""
    total = edges.shape[1] * (2 if undirected else 1)
    starts = scratch.array("starts", (num_nodes + 1,), np.int64)
    sources = scratch.array("sources", (total,), np.int32)
    out_degree = scratch.array("out_degree", (num_nodes,))
    if scratch.part.rank == 0:
        counts, leaving = np.zeros(num_nodes, np.int64), np.zeros(num_nodes, np.int64)
        for source, target in _directed(edges, num_nodes, undirected):
            counts += np.bincount(target, minlength=num_nodes)
            leaving += np.bincount(source, minlength=num_nodes)
        if not np.array_equal(counts, leaving):
            log.warning("the edges are directed; --undirected counts each of them in both directions")
        np.cumsum(counts, out=starts[1:])
        out_degree[:] = leaving
        free = np.array(starts[:-1])
        for source, target in _directed(edges, num_nodes, undirected):
            order = np.argsort(target, kind="stable")
            source, target = source[order], target[order]
            first = np.flatnonzero(np.r_[True, target[1:] != target[:-1]])
            length = np.diff(np.r_[first, len(target)])
            sources[free[target] + np.arange(len(target)) - np.repeat(first, length)] = source
            free[target[first]] += length
    scratch.part.meet()
    return Neighbours(starts, sources, out_degree)


def _directed(
    edges: NDArray[Any], num_nodes: int, undirected: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    for start in range(0, edges.shape[1], _EDGES):
        source, target = np.asarray(edges[:, start : start + _EDGES], dtype=np.int64)
        low, high = min(source.min(), target.min()), max(source.max(), target.max())
        if low < 0 or high >= num_nodes:
            raise DataError(
                f"the edges name nodes {low} to {high}, and there are {num_nodes}: see --num-nodes"
            )
        yield source, target
        if undirected:
            yield target, source


@dataclass
class _BlockRows:
    """What a layer reads, for the rows (node, sample) of one block: made before the layer is called."""

    tap: Tensor | None = None  # [R, K, F]
    neighbour: Tensor | None = None  # [R, F]
    multiplicity = parent = None

    def taps(self, x: Tensor, num_taps: int) -> Tensor:
        """The taps."""
        assert self.tap is not None
        return self.tap

    def neighbours(self, x: Tensor) -> Tensor:
        """A X."""
        assert self.neighbour is not None
        return self.neighbour

    def own(self, x: Tensor) -> Tensor:
        """The rows themselves."""
        return x


class LargeGraphEncoder:
    """Encodes a graph with an R-PEARL module in evaluation.

    Args:
        module: the encoding; ``tap_moments`` is not offered here.
        edges: [2, E], any array, such as :func:`read_edges` gives.
        num_nodes: N.
        undirected: whether every edge counts in both directions.
        folder: for the scratch files.
        block: nodes at a time.
        chunk: samples at a time.
        part: which process this is.
    """

    def __init__(
        self,
        module: RPEARL,
        edges: NDArray[Any],
        num_nodes: int,
        folder: Path,
        *,
        undirected: bool = False,
        block: int = 1 << 17,
        chunk: int = 1,
        part: Part | None = None,
    ) -> None:
        if module.tap_norm is not None:
            raise UserError("tap_moments: is not offered for large graphs; use an encoding without it")
        if num_nodes < 0:
            raise UserError(f"{num_nodes} nodes: expected a whole number from 0 up; see --num-nodes")
        if num_nodes > np.iinfo(np.int32).max:
            raise UserError(f"{num_nodes:,} nodes: numbers of nodes are stored in 32 bits; split the graph")
        # A copy: the module may be in training, in another precision or on another device.
        self.module, self.num_nodes = copy.deepcopy(module).cpu().float().eval(), num_nodes
        self.block, self.chunk = block, chunk
        self.part = part or Part()
        self.scratch = Scratch(folder, self.part)
        self.neighbours = group_edges(edges, num_nodes, undirected, self.scratch)
        self._shift = SHIFTS[module.gso]
        out = torch.from_numpy(np.asarray(self.neighbours.out_degree))
        self._source_weight = degree_power(out, self._shift.b).numpy() if self._shift.b else None

    @torch.inference_mode()
    def encode(self, out: NDArray[np.float32]) -> Iterator[float]:
        """Write the encoding of this process's nodes to ``out`` [N, dim_pe]; yields the share that is
        done."""
        module, done = self.module, 0
        chunks = range(0, module.num_samples, self.chunk)
        steps = module.num_eval_draws * len(chunks) * len(module.phi.layers)
        for table in range(module.num_eval_draws):
            key = make_key(module.eval_seed, table)
            total: dict[int, Moments] = {}
            for start in chunks:
                stop = min(start + self.chunk, module.num_samples)
                x = self._signals(key, start, stop)
                running: NDArray[np.float32] | None = None
                for number, layer in enumerate(module.phi.layers):
                    assert isinstance(layer, Layer)
                    x, running = self._layer(layer, x, running, number, stop - start)
                    done += 1
                    yield done / steps
                self._gather(x if running is None else running, stop - start, total)
            self._finish(total, out, 1 / module.num_eval_draws, first=table == 0)
        self.part.meet()

    def _blocks(self) -> Iterator[slice]:
        return self.part.blocks(self.num_nodes, self.block)

    def _signals(self, key: Tensor, start: int, stop: int) -> NDArray[np.float32]:
        x = self.scratch.array("rows_signal", (self.num_nodes, stop - start))
        for block in self._blocks():
            position = torch.arange(block.start, block.stop)
            drawn = draw_samples(
                self.module.distribution,
                key,
                position,
                start,
                stop,
                dtype=torch.float32,
                num_samples=self.module.num_samples,
            )
            x[block] = drawn.numpy()
        self.part.meet()
        return x

    def _layer(
        self,
        layer: Layer,
        x: NDArray[np.float32],
        running: NDArray[np.float32] | None,
        number: int,
        samples: int,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """The layer's rows [N, M F], and with ``skip="sum"`` the sum of all layers' so far."""
        skip = self.module.phi.skip
        powers = self._powers(x, layer.num_taps) if isinstance(layer, TapLayer) else []
        if not isinstance(layer, TapLayer | GINLayer):
            raise UserError(f"{type(layer).__name__}: is no layer that large graphs are encoded with")
        # Two files for the layers in alternation: the one before is read while this one is written.
        y = self.scratch.array(f"rows_{number % 2}", (self.num_nodes, samples * layer.out_dim))
        for block in self._blocks():
            own = torch.from_numpy(np.array(x[block])).view(-1, layer.in_dim)
            if powers:
                taps = [torch.from_numpy(np.array(power[block])).view(-1, layer.in_dim) for power in powers]
                rows = _BlockRows(tap=torch.stack(taps, dim=1))
            else:
                rows = _BlockRows(neighbour=self.neighbours.sums(x, block).view(-1, layer.in_dim))
            made = layer(own, rows)
            if skip == "residual" and layer.in_dim == layer.out_dim:
                made = made + own
            y[block] = made.view(block.stop - block.start, -1).numpy()
        if skip == "sum":
            if number == 0:
                running = self.scratch.array("rows_sum", y.shape)
            assert running is not None
            for block in self._blocks():
                running[block] = y[block] if number == 0 else running[block] + y[block]
        self.part.meet()
        return y, running

    def _powers(self, x: NDArray[np.float32], num_taps: int) -> list[NDArray[np.float32]]:
        """X, S X, ..., S^(K-1) X, each in a file."""
        shift, powers = self._shift, [x]
        for tap in range(1, num_taps):
            y = self.scratch.array(f"tap_{tap}", x.shape)
            for block in self._blocks():
                before = torch.from_numpy(np.array(powers[-1][block]))
                starts, _ = self.neighbours.rows(block)
                degree = torch.from_numpy(np.diff(starts)).float().unsqueeze(1)
                sums = self.neighbours.sums(powers[-1], block, self._source_weight)
                sums = shift.sign * degree_power(degree, shift.a) * sums
                if shift.diagonal != "zero":
                    sums = sums + (degree if shift.diagonal == "degree" else 1.0) * before
                if powers_grow(self.module.gso):
                    _check_range(sums)
                y[block] = sums.numpy()
            self.part.meet()
            powers.append(y)
        return powers

    def _gather(self, x: NDArray[np.float32], samples: int, total: dict[int, Moments]) -> None:
        """Add the outputs of some samples to the moments of every block."""
        phi = self.module.phi
        for block in self._blocks():
            rows = torch.from_numpy(np.array(x[block])).view((block.stop - block.start) * samples, -1)
            outputs = rows if phi.readout is None else phi.readout(rows)
            values = outputs.view(block.stop - block.start, samples, -1)
            before = total.get(block.start)
            part = sample_moments(values, self.module.pool, None if before is None else before.reference)
            total[block.start] = part if before is None else merge_moments(before, part)

    def _finish(self, total: dict[int, Moments], out: NDArray[np.float32], share: float, first: bool) -> None:
        for block in self._blocks():
            pe = statistics(total[block.start], self.module.pool)
            if isinstance(self.module.project, nn.Module):
                pe = self.module.project(pe)
            if self.module.scale:
                pe = pe / (self.num_nodes**0.5 * len(self.module.phi.layers))
            out[block] = share * pe.numpy() if first else out[block] + share * pe.numpy()


def _check_range(taps: Tensor) -> None:
    try:
        check_range(taps)
    except ValueError as error:
        raise UserError(str(error)) from error


def encode_large_graph(
    module: RPEARL, edges: NDArray[Any], out: Path, num_nodes: int | None = None, **settings: Any
) -> Iterator[float]:
    """Encode a graph into the file ``out`` (.npy, float32 [N, dim_pe]), which appears when it is complete;
    yields the share that is done.

    ``settings`` are those of :class:`LargeGraphEncoder`; scratch files lie next to ``out`` unless ``folder``
    says where, and are removed at the end. Of several processes all call it with the same ``folder``.
    """
    nodes = count_nodes(edges) if num_nodes is None else num_nodes
    part: Part = settings.get("part") or Part()
    folder = settings.pop("folder", None)
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder or out.parent, prefix="encode-graph-") as made:
        shared = [made]
        if part.world_size > 1:
            torch.distributed.broadcast_object_list(shared, src=0)
        encoder = LargeGraphEncoder(module, edges, nodes, Path(shared[0]), **settings)
        # Next to out, on its disk; named like the folder of this start.
        partial = out.with_name(f".{out.name}.{Path(shared[0]).name}")
        try:
            if part.rank == 0:
                _create(partial, (nodes, module.dim_pe), np.float32)
            part.meet()
            result = np.lib.format.open_memmap(partial, mode="r+")
            yield from encoder.encode(result)
            result.flush()
            part.meet()
            if part.rank == 0:
                partial.replace(out)
            part.meet()
        finally:
            if part.rank == 0:
                partial.unlink(missing_ok=True)
