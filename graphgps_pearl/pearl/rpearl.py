"""R-PEARL (eq. 5): random signals, and the mean over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from graphgps_pearl.pearl.base import PEARL, check_taps, make_tap_norm, readout_has_bias
from graphgps_pearl.pearl.checks import check_at_least, check_name
from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.norm import BatchNorm
from graphgps_pearl.pearl.phi import Phi, build_phi
from graphgps_pearl.pearl.rows import Operators, SampleRows
from graphgps_pearl.pearl.signals import draw_samples, make_key
from graphgps_pearl.pearl.statistics import (
    Moments,
    is_linear,
    mapped_moments,
    merge_moments,
    sample_moments,
    tap_moments,
)
from graphgps_pearl.vocabulary import DISTRIBUTIONS

Draw = Callable[[int, int], Tensor]  # samples from, to: [N, to - from]


class RPEARL(PEARL):
    r"""The R-PEARL positional encoding from `"Learning Efficient Positional Encodings with Graph Neural
    Networks" <https://arxiv.org/abs/2502.01122>`_

    .. math:: P_v = \frac1M \sum_{m=1}^{M} \Phi(G, q^{(m)})_v

    with i.i.d. signals :math:`q^{(m)}` of zero mean and unit variance. Cost
    :math:`\Theta(M N F^2 + M |E| F)`, memory :math:`\Theta(M N F)`, or :math:`\Theta(c N F)` in chunks of c.

    In training every call draws new samples (one number of torch's global generator decides all of them). In
    evaluation they are a fixed table, read at each node's position in its own graph: repeatable, independent
    of the batch, and no random state changes. The encoding then depends on the order of the nodes, at
    :math:`O(M^{-1/2})`; ``num_eval_draws`` averages over several tables.

    With ``node_id``, numbers that nodes keep in every subgraph of one large graph, the samples are a hash of
    these: a node has the same ones in every subgraph, process and machine, and none is stored or sent. In
    training they change from call to call still.

    Args:
        dim_pe: columns of the encoding.
        num_samples: M.
        hidden_dim, num_layers, num_taps, gso, mlp_layers, mlp_hidden, norm, skip, act, scale:
            as in :class:`~graphgps_pearl.pearl.BPEARL`; the mean needs no ``scale``.
        pool: statistic over the samples: ``mean``, ``sum``, ``var``, ``std``, ``max``, or several joined by
            ``+``, which one linear layer projects to ``dim_pe`` columns.
        distribution: of the samples: ``gaussian``, ``rademacher``, ``two_point`` (E q^3 = 1) or ``sobol``
            (Gaussian samples spread evenly).
        chunk_size: samples that go through :math:`\Phi` at once; the backward pass recomputes each chunk
            instead of storing it. None: all of them. Batch norm in training needs all samples at once and
            refuses chunks.
        eval_seed: seed of the samples in evaluation.
        num_eval_draws: tables of samples to average over in evaluation.
        tap_moments: append the second moments of the taps over the samples, normalised, to the statistics
            before they are projected. With ``gso="sym_adjacency"`` they estimate RWSE for 1 to 2 K - 2 steps,
            at linear cost (:func:`~graphgps_pearl.pearl.statistics.tap_moments`); ``rademacher`` signals
            have the least error with few samples, ``sobol`` from about 35 on.

    >>> ring = torch.tensor([[0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3]])
    >>> pe = RPEARL(dim_pe=16, num_samples=50, hidden_dim=8, num_layers=2, distribution="gaussian").eval()
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
        distribution: str = "gaussian",
        chunk_size: int | None = None,
        eval_seed: int = 0,
        num_eval_draws: int = 1,
        tap_moments: bool = False,
        end: str = "activation",
    ) -> None:
        check_taps("tap_moments", tap_moments, num_taps)
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
            end=end,
            bias=readout_has_bias(pool),
        )
        more = 2 * num_taps - 2 if tap_moments else 0
        super().__init__(phi, gso=gso, pool=pool, scale=scale, more_columns=more)
        self.num_taps, self.tap_norm = num_taps, make_tap_norm(more, norm)
        self._set_sampling(num_samples, distribution, chunk_size, eval_seed, num_eval_draws)

    @classmethod
    def from_phi(
        cls,
        phi: Phi,
        *,
        num_samples: int = 50,
        gso: str = "sym_laplacian",
        pool: str = "mean",
        scale: bool = False,
        distribution: str = "gaussian",
        chunk_size: int | None = None,
        eval_seed: int = 0,
        num_eval_draws: int = 1,
    ) -> Self:
        r"""The encoding with a given :math:`\Phi`, such as a stack of generalised layers."""
        module = cls.__new__(cls)
        PEARL.__init__(module, phi, gso=gso, pool=pool, scale=scale)
        module.num_taps, module.tap_norm = 0, None
        module._set_sampling(num_samples, distribution, chunk_size, eval_seed, num_eval_draws)
        return module

    def _set_sampling(
        self,
        num_samples: int,
        distribution: str,
        chunk_size: int | None,
        eval_seed: int,
        num_eval_draws: int,
    ) -> None:
        check_name("distribution", distribution, DISTRIBUTIONS)
        check_at_least(1, num_samples=num_samples, chunk_size=chunk_size, num_eval_draws=num_eval_draws)
        self.num_samples, self.distribution, self.chunk_size = num_samples, distribution, chunk_size
        self.eval_seed, self.num_eval_draws = eval_seed, num_eval_draws

    def forward(
        self,
        edge_index: Tensor | Any,
        batch: Tensor | None = None,
        num_nodes: int | None = None,
        samples: Tensor | None = None,
        edge_weight: Tensor | None = None,
        node_id: Tensor | None = None,
    ) -> Tensor:
        """The encoding of every node, :obj:`[N, dim_pe]`.

        Args:
            edge_index: :obj:`[2, E]`; or a PyG ``Data`` or ``Batch``, which has all the arguments
                (``node_id`` as ``n_id``); or what :meth:`prepare` gave.
            batch: the graph of every node, :obj:`[N]`, sorted; None: one graph.
            num_nodes: N.
            samples: :obj:`[N, M]`, to be used instead of drawn ones.
            edge_weight: :obj:`[E]`, not negative; the operators and the sums over neighbours are weighted.
            node_id: :obj:`[N]`, the node's number in the graph that these are parts of.
        """
        node_id = getattr(edge_index, "n_id", None) if node_id is None else node_id
        graphs = check_graphs(edge_index, batch, num_nodes, edge_weight)
        position = graphs.position if node_id is None else _check_ids(node_id, graphs.num_nodes)
        if samples is not None:
            given = _check_samples(samples, graphs.num_nodes).to(self._dtype)
            pe = self._encode(graphs, lambda start, stop: given[:, start:stop], samples.size(1))
        elif self.training:
            seed = torch.randint(2**63 - 1, ())
            # One key for each graph [N]; one for all parts of one graph.
            key = make_key(seed, graphs.graph) if node_id is None else make_key(seed)
            pe = self._encode(graphs, self._draw(position, key), self.num_samples)
        else:
            keys = [make_key(self.eval_seed, table) for table in range(self.num_eval_draws)]
            tables = [self._encode(graphs, self._draw(position, key), self.num_samples) for key in keys]
            pe = torch.stack(tables).mean(0)
        return self._scaled(pe, graphs)

    def _constant(self, graphs: Graphs) -> Operators:
        return Operators(graphs, self.gso, self._dtype)

    def _draw(self, position: Tensor, key: Tensor) -> Draw:
        return partial(
            draw_samples,
            self.distribution,
            key,
            position,
            dtype=self._dtype,
            num_samples=self.num_samples,
        )

    def _encode(self, graphs: Graphs, draw: Draw, num_samples: int) -> Tensor:
        """The statistics over all samples, chunk by chunk."""
        chunk_size = min(self.chunk_size or num_samples, num_samples)
        chunked = chunk_size < num_samples
        if chunked and self.training and any(isinstance(m, BatchNorm) for m in self.phi.modules()):
            raise ValueError(
                f"chunk_size={self.chunk_size} with batch norm in training would normalise chunk by chunk; "
                f"use norm='layer' or 'none', or chunk_size=None (all {num_samples} samples at once)"
            )
        operators = graphs.get(self._name, self._constant)
        total: Moments | None = None
        tap_total: Tensor | None = None
        for start in range(0, num_samples, chunk_size):
            stop = min(start + chunk_size, num_samples)
            arguments = operators, draw, start, stop, None if total is None else total.reference
            if chunked and torch.is_grad_enabled():  # nothing in a chunk draws from torch's generator
                part, tap_part = checkpoint(
                    self._chunk, *arguments, use_reentrant=False, preserve_rng_state=False
                )
            else:
                part, tap_part = self._chunk(*arguments)
            total = part if total is None else merge_moments(total, part)
            if tap_part is not None:
                share = tap_part * ((stop - start) / num_samples)
                tap_total = share if tap_total is None else tap_total + share
        assert total is not None
        if self.tap_norm is not None:
            tap_total = self.tap_norm(tap_total)
        if self._pools_first:
            assert self.phi.readout is not None
            total = mapped_moments(total, self.phi.readout)
        return self._pooled(total, tap_total)

    @property
    def _pools_first(self) -> bool:
        """Whether the readout multiplies the pooled rows, one for each node, instead of all samples'."""
        return self.phi.readout is not None and is_linear(self.pool)

    def _chunk(
        self, operators: Operators, draw: Draw, start: int, stop: int, reference: Tensor | None
    ) -> tuple[Moments, Tensor | None]:
        """Moments of the outputs, and of the taps, over the samples ``start`` to ``stop``."""
        num_nodes, num_samples = operators.graphs.num_nodes, stop - start
        signals = draw(start, stop).reshape(-1, 1)  # [N * M, 1]
        rows = SampleRows(operators, num_samples)
        taps = None
        if self.tap_norm is not None:
            taps = tap_moments(rows.taps(signals, self.num_taps).view(num_nodes, num_samples, self.num_taps))
        phi = self.phi.hidden if self._pools_first else self.phi
        x = phi(signals, rows).to(self._dtype).unflatten(0, (num_nodes, num_samples))
        return sample_moments(x, self.pool, reference), taps

    def __repr__(self) -> str:
        more = [f"num_samples={self.num_samples}", f"distribution={self.distribution!r}"]
        if self.chunk_size is not None:
            more.append(f"chunk_size={self.chunk_size}")
        if self.eval_seed:
            more.append(f"eval_seed={self.eval_seed}")
        if self.num_eval_draws > 1:
            more.append(f"num_eval_draws={self.num_eval_draws}")
        if self.tap_norm is not None:
            more.append("tap_moments=True")
        return self._describe(*more)


def _check_ids(node_id: Tensor, num_nodes: int) -> Tensor:
    if node_id.shape != (num_nodes,) or node_id.is_floating_point():
        raise ValueError(
            f"node_id must hold one whole number for each of the {num_nodes} nodes, got {list(node_id.shape)}"
        )
    return node_id.long()


def _check_samples(samples: Tensor, num_nodes: int) -> Tensor:
    if samples.dim() != 2 or samples.size(0) != num_nodes or samples.size(1) < 1:
        raise ValueError(f"samples must have shape [{num_nodes}, M] with M >= 1, got {list(samples.shape)}")
    if not samples.is_floating_point():
        raise ValueError(f"samples must hold floating-point numbers, got {samples.dtype}")
    return samples
