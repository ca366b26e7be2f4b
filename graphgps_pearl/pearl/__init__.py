r"""PEARL positional encodings (Kanatsoulis et al., ICLR 2025) as plain PyTorch modules.

For every sample m a signal :math:`q^{(m)} \in R^N` goes through the same network :math:`\Phi`, which sees the
edges and no features, and a statistic over the samples is the encoding:

.. math:: P = \rho\big(\Phi(G, q^{(1)}), \dots, \Phi(G, q^{(M)})\big) \in R^{N \times d_p}

:class:`RPEARL` draws random signals and takes the mean, :class:`BPEARL` takes the standard basis and sums.
"""

from graphgps_pearl.pearl.bpearl import BPEARL
from graphgps_pearl.pearl.graphs import Graphs, check_graphs
from graphgps_pearl.pearl.operators import SparseMatrix, graph_shift_operator, taps
from graphgps_pearl.pearl.pairs import PairEncoding, encode_pairs
from graphgps_pearl.pearl.phi import ACTIVATIONS, GINLayer, Phi, TapLayer
from graphgps_pearl.pearl.rpearl import RPEARL
from graphgps_pearl.pearl.signals import draw_samples, make_key

__all__ = [
    "ACTIVATIONS",
    "BPEARL",
    "RPEARL",
    "GINLayer",
    "Graphs",
    "PairEncoding",
    "Phi",
    "SparseMatrix",
    "TapLayer",
    "check_graphs",
    "draw_samples",
    "encode_pairs",
    "graph_shift_operator",
    "make_key",
    "taps",
]
