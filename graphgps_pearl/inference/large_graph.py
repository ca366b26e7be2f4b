r"""R-PEARL on one graph of any size, exactly, in memory that does not grow with the samples.

In evaluation every part of Φ but the sums over neighbours acts on one row alone. So the layers are computed
one after the other for all nodes, block of nodes by block, from what the layer before left in a file:

.. math:: X_{l+1}[block] = f_l(X_l[block], (A X_l)[block])

Signals are a hash of (node, sample) and are made when they are read. The files are memory-mapped: what fits
stays in memory, the rest on the disk. Several processes (torchrun) share the files, each computes its own
nodes, and they meet after every layer; the result is the same to the last bit.

Bytes, for N nodes, E directed edges, width F, c samples at a time, D columns: edges 4 E + 12 N, rows 8 c F N
(two layers), sums 4 D N (three times that for var and std, twice for max). Time is linear in N + E, samples
and layers.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from graphgps_pearl.errors import UserError
from graphgps_pearl.inference.graph_files import Part, Scratch, count_nodes, create_array, group_edges
from graphgps_pearl.pearl import RPEARL
from graphgps_pearl.pearl.checks import check_range
from graphgps_pearl.pearl.operators import SHIFTS, degree_power, powers_grow
from graphgps_pearl.pearl.phi import GINLayer, Layer, TapLayer
from graphgps_pearl.pearl.signals import draw_samples, make_key
from graphgps_pearl.pearl.statistics import Moments, merge_moments, sample_moments, statistics


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
        edges: [2, E], any array, such as :func:`graph_files.read_edges` gives.
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
            raise UserError(
                "tap_moments: is not offered for large graphs; use an encoding without it, such as "
                "zinc-rpearl-paper's"
            )
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
                create_array(partial, (nodes, module.dim_pe), np.float32)
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
