"""One graph's edges in memory-mapped files, sorted by target, and what several processes share of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from graphgps_pearl.errors import DataError
from graphgps_pearl.files import is_full

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


def create_array(file: Path, shape: tuple[int, ...], dtype: Any) -> None:
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
                create_array(file, shape, dtype)
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
    total = edges.shape[1] * (2 if undirected else 1)  # more than are used where there are self-loops
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
        if undirected and (others := source != target).any():  # a self-loop is its own other direction
            yield target[others], source[others]
