r"""R-PEARL: the samples are random signals, and the statistic is their mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Self

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from graphgps_pearl.pearl.base import PEARL, readout_has_bias
from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.names import check_name
from graphgps_pearl.pearl.norm import BatchNorm
from graphgps_pearl.pearl.phi import Phi, build_phi
from graphgps_pearl.pearl.pooling import Moments, merge_moments, sample_moments
from graphgps_pearl.pearl.rows import NodeOperators, SampleRows
from graphgps_pearl.pearl.sampling import LAWS, draw_samples, make_key

Draw = Callable[[int, int], Tensor]  # samples from, to: [N, to - from]


class RPEARL(PEARL):
    r"""The R-PEARL positional encoding from `"Learning Efficient Positional Encodings with Graph Neural
    Networks" <https://arxiv.org/abs/2502.01122>`_

    .. math:: P_v = \frac1M \sum_{m=1}^{M} \Phi(G, q^{(m)})_v

    with i.i.d. signals :math:`q^{(m)}` of zero mean and unit variance. Cost
    :math:`\Theta(M N F^2 + M |E| F)`, memory :math:`\Theta(M N F)`, or :math:`\Theta(c N F)` in chunks of c.

    In training the samples are drawn afresh (one number of torch's global generator decides all of them). In
    evaluation they are a fixed table, read at each node's position in its own graph: repeatable, independent
    of the batch, and no random state moves. The encoding then depends on the order of the nodes, at
    :math:`O(M^{-1/2})`; ``num_tables`` averages over several tables.

    Args:
        dim_pe: columns of the encoding.
        num_samples: M.
        hidden_dim, num_layers, num_taps, gso, mlp_layers, mlp_hidden, norm, skip, act, scale:
            as in :class:`~graphgps_pearl.pearl.BPEARL`.
        pool: statistic over the samples: ``mean``, ``sum``, ``var``, ``std``, ``max``, or several joined by
            ``+``, which one linear layer projects to ``dim_pe`` columns.
        law: of the samples: ``gaussian``, ``rademacher``, ``two_point`` (E q^3 = 1) or ``sobol`` (Gaussian
            samples spread evenly).
        chunk_size: samples that go through :math:`\Phi` at once; the backward pass computes each chunk again
            instead of keeping it. None: all of them. Batch norm in training has to see all samples at once
            and refuses chunks.
        eval_seed: names the table of samples for evaluation.
        num_tables: tables to average over in evaluation.

    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> pe = RPEARL(dim_pe=16, num_samples=50, hidden_dim=8, num_layers=2, law="gaussian").eval()
    >>> p = pe(ring)
    >>> p.shape
    torch.Size([4, 16])
    >>> torch.equal(p, pe(ring))
    True
    """

    def __init__(
        self,
        dim_pe: int,
        num_samples: int = 50,
        hidden_dim: int = 40,
        num_layers: int = 4,
        num_taps: int = 1,
        gso: str = "sym_laplacian",
        mlp_layers: int = 2,
        mlp_hidden: int | None = None,
        norm: str = "batch",
        skip: str = "residual",
        act: str = "relu",
        pool: str = "mean",
        scale: bool = False,
        law: str = "gaussian",
        chunk_size: int | None = None,
        eval_seed: int = 0,
        num_tables: int = 1,
    ) -> None:
        phi = build_phi(
            dim_pe,
            hidden_dim=hidden_dim,
            num_layers=num_layers,
            num_taps=num_taps,
            mlp_layers=mlp_layers,
            mlp_hidden=mlp_hidden,
            norm=norm,
            skip=skip,
            act=act,
            bias=readout_has_bias(pool),
        )
        super().__init__(phi, gso=gso, pool=pool, scale=scale)
        self._set_sampling(num_samples, law, chunk_size, eval_seed, num_tables)

    @classmethod
    def from_phi(
        cls,
        phi: Phi,
        *,
        num_samples: int = 50,
        gso: str = "sym_laplacian",
        pool: str = "mean",
        scale: bool = False,
        law: str = "gaussian",
        chunk_size: int | None = None,
        eval_seed: int = 0,
        num_tables: int = 1,
    ) -> Self:
        r"""The encoding made of a :math:`\Phi` of one's own, such as a stack of generalised layers."""
        module = cls.__new__(cls)
        PEARL.__init__(module, phi, gso=gso, pool=pool, scale=scale)
        module._set_sampling(num_samples, law, chunk_size, eval_seed, num_tables)
        return module

    def _set_sampling(
        self, num_samples: int, law: str, chunk_size: int | None, eval_seed: int, num_tables: int
    ) -> None:
        check_name("law", law, LAWS)
        for name, value in (
            ("num_samples", num_samples),
            ("chunk_size", chunk_size),
            ("num_tables", num_tables),
        ):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")
        self.num_samples, self.law, self.chunk_size = num_samples, law, chunk_size
        self.eval_seed, self.num_tables = eval_seed, num_tables

    def forward(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        num_nodes: int | None = None,
        samples: Tensor | None = None,
    ) -> Tensor:
        """The encoding of every node, :obj:`[N, dim_pe]`; ``samples`` :obj:`[N, M]` override the draw."""
        graphs = check_graphs(edge_index, batch, num_nodes)
        if samples is not None:
            given = _check_samples(samples, graphs.num_nodes).to(self._dtype)
            pe = self._encode(graphs, lambda start, stop: given[:, start:stop], samples.size(1))
        elif self.training:
            pe = self._encode(graphs, self._draw(graphs, self._fresh_key(graphs)), self.num_samples)
        else:
            keys = [make_key(self.eval_seed, table) for table in range(self.num_tables)]
            tables = [self._encode(graphs, self._draw(graphs, key), self.num_samples) for key in keys]
            pe = torch.stack(tables).mean(0)
        return self._scaled(pe, graphs)

    def _draw(self, graphs: Graphs, key: Tensor) -> Draw:
        return partial(
            draw_samples, self.law, key, graphs.position, dtype=self._dtype, num_samples=self.num_samples
        )

    def _fresh_key(self, graphs: Graphs) -> Tensor:
        """A key for each node: one draw of torch's generator, and the node's graph."""
        return make_key(torch.randint(2**63 - 1, ()), graphs.graph)

    def _encode(self, graphs: Graphs, draw: Draw, num_samples: int) -> Tensor:
        """The pooled encoding over all samples, chunk by chunk."""
        chunk_size = min(self.chunk_size or num_samples, num_samples)
        chunked = chunk_size < num_samples
        if chunked and self.training and any(isinstance(m, BatchNorm) for m in self.phi.modules()):
            raise ValueError(
                f"chunk_size={self.chunk_size} with batch norm in training would normalise chunk by chunk; "
                f"use norm='layer' or 'none', or chunk_size=None (all {num_samples} samples at once)"
            )
        operators = NodeOperators(graphs, self.gso, self._dtype)
        total: Moments | None = None
        for start in range(0, num_samples, chunk_size):
            stop = min(start + chunk_size, num_samples)
            reference = None if total is None else total.reference
            if chunked and torch.is_grad_enabled():  # nothing random happens inside: no state to restore
                part = checkpoint(
                    self._chunk,
                    operators,
                    draw,
                    start,
                    stop,
                    reference,
                    use_reentrant=False,
                    preserve_rng_state=False,
                )
            else:
                part = self._chunk(operators, draw, start, stop, reference)
            total = part if total is None else merge_moments(total, part)
        assert total is not None
        return self._pooled(total)

    def _chunk(
        self, operators: NodeOperators, draw: Draw, start: int, stop: int, reference: Tensor | None
    ) -> Moments:
        """Moments of the samples ``start`` to ``stop``."""
        rows = SampleRows(operators, stop - start)
        signals = draw(start, stop).reshape(-1, 1)  # [N * M, 1]
        x = self.phi(signals, rows).to(self._dtype)
        x = x.view(operators.graphs.num_nodes, stop - start, self.dim_pe)
        return sample_moments(x, self.pool, reference)

    def __repr__(self) -> str:
        more = [f"num_samples={self.num_samples}", f"law={self.law!r}"]
        if self.chunk_size is not None:
            more.append(f"chunk_size={self.chunk_size}")
        if self.num_tables > 1:
            more.append(f"num_tables={self.num_tables}")
        return self._describe(*more)


def _check_samples(samples: Tensor, num_nodes: int) -> Tensor:
    if samples.dim() != 2 or samples.size(0) != num_nodes or samples.size(1) < 1:
        raise ValueError(f"samples must have shape [{num_nodes}, M] with M >= 1, got {list(samples.shape)}")
    if not samples.is_floating_point():
        raise ValueError(f"samples must hold floating-point numbers, got {samples.dtype}")
    return samples
