r"""PEARL positional encodings (Kanatsoulis et al., ICLR 2025) as plain PyTorch modules.

For every sample m a signal :math:`q^{(m)} \in R^N` goes through the same network :math:`\Phi`, which sees the
edges and no features, and a statistic over the samples is the encoding:

.. math:: P = \rho\big(\Phi(G, q^{(1)}), \dots, \Phi(G, q^{(M)})\big) \in R^{N \times d_p}

:class:`RPEARL` draws random signals and takes the mean, :class:`BPEARL` takes the standard basis and sums.
"""

from typing import TYPE_CHECKING, Any

from graphgps_pearl.pearl.bpearl import BPEARL, encode_pairs
from graphgps_pearl.pearl.gso import GSOS, graph_shift_operator
from graphgps_pearl.pearl.names import ACTIVATIONS
from graphgps_pearl.pearl.norm import NORMS
from graphgps_pearl.pearl.pairs import PairEncoding
from graphgps_pearl.pearl.phi import SKIPS, GINLayer, Phi, TapLayer
from graphgps_pearl.pearl.pooling import PAIR_POOLS, POOLS
from graphgps_pearl.pearl.rows import taps
from graphgps_pearl.pearl.rpearl import RPEARL
from graphgps_pearl.pearl.sampling import LAWS, draw_samples
from graphgps_pearl.pearl.sparse import SparseMatrix

if TYPE_CHECKING:
    from graphgps_pearl.pearl.stored import BPEARLPlan, stored_plan

__all__ = [
    "ACTIVATIONS",
    "BPEARL",
    "GSOS",
    "LAWS",
    "NORMS",
    "PAIR_POOLS",
    "POOLS",
    "RPEARL",
    "SKIPS",
    "BPEARLPlan",
    "GINLayer",
    "PairEncoding",
    "Phi",
    "SparseMatrix",
    "TapLayer",
    "draw_samples",
    "encode_pairs",
    "graph_shift_operator",
    "stored_plan",
    "taps",
]


def __getattr__(name: str) -> Any:
    """What works on PyG's graphs is imported when asked for: the encodings themselves need torch alone."""
    if name in ("BPEARLPlan", "stored_plan"):
        from graphgps_pearl.pearl import stored

        return getattr(stored, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
