r"""What the spectral and random-walk encodings need precomputed, as PyG transforms.

Each transform is a thin shell around a pure function of ``edge_index``:

* :func:`laplacian_eigen`: eigenpairs :math:`L v_j = \lambda_j v_j` of a graph Laplacian,
* :func:`random_walk_diagonal`: :math:`\operatorname{diag}((D^{-1}A)^t)` for given times :math:`t`.

Graphs of a batch have different numbers of eigenvectors, so these are stored flat: graph :math:`i` with
:math:`n_i` nodes and :math:`k_i = \min(n_i, k)` eigenvectors holds ``eigvecs`` of length :math:`n_i k_i`
(node by node) and ``eigvals`` of length :math:`k_i`. PyG's collation concatenates both; no padding is
stored, and :mod:`graphgps_pearl.encoders.ragged` says which entry is whose. The text of a transform names
every setting and the version of its mathematics: prepared datasets are keyed by it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.vocabulary import EIGENVECTOR_NORMS, LAPLACIAN_NORMS, SPECTRUM_ENDS

EIGVEC_NORMS = ("none", *EIGENVECTOR_NORMS)
_ZERO = 1e-9  # eigenvalues below are the rounding of zero (float64, entries of order 1)


def laplacian_eigen(
    edge_index: Tensor,
    num_nodes: int,
    laplacian_norm: str = "sym",
    eigvec_norm: str = "L2",
    max_freqs: int = 10,
    which: str = "smallest",
) -> tuple[Tensor, Tensor]:
    r"""Eigenvalues [k] and eigenvectors [n, k] of the Laplacian, k = min(n, max_freqs), or n if
    ``max_freqs`` is 0.

    ``none`` is :math:`D - A`, ``sym`` :math:`I - D^{-1/2} A D^{-1/2}`, ``rw`` :math:`I - D^{-1} A` (whose
    eigenvectors are :math:`D^{-1/2} u` for those of ``sym``). Directions and self-loops are ignored. An
    isolated node has the row of :math:`I` in the normalised Laplacians, as in PyG. Smallest come in
    ascending, largest in descending order.

    >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> laplacian_eigen(path, 3, laplacian_norm="none")[0].round(decimals=4)
    tensor([0., 1., 3.])
    """
    adjacency = _undirected_adjacency(edge_index, num_nodes)
    degree = adjacency.sum(1)
    if laplacian_norm == "none":
        laplacian = torch.diag(degree) - adjacency
        rescale = None
    else:
        root = torch.where(degree > 0, degree.rsqrt(), 1.0)
        laplacian = torch.eye(num_nodes, dtype=adjacency.dtype) - root[:, None] * adjacency * root
        rescale = root if laplacian_norm == "rw" else None
    eigvals, eigvecs = torch.linalg.eigh(laplacian)
    if rescale is not None:
        eigvecs = rescale[:, None] * eigvecs
    eigvals = torch.where(eigvals < _ZERO, 0.0, eigvals)
    if which == "largest":
        eigvals, eigvecs = eigvals.flip(0), eigvecs.flip(1)
    if max_freqs:
        eigvals, eigvecs = eigvals[:max_freqs], eigvecs[:, :max_freqs]
    return eigvals.float(), normalise_eigenvectors(eigvecs, eigvals, eigvec_norm).float()


def _undirected_adjacency(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Dense float64 adjacency [n, n] without self-loops; a directed graph is symmetrised with weights 1."""
    adjacency = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    ones = torch.ones(edge_index.size(1), dtype=torch.float64)
    adjacency.index_put_((edge_index[0], edge_index[1]), ones, accumulate=True)
    adjacency.fill_diagonal_(0.0)
    if not torch.equal(adjacency, adjacency.T):
        adjacency = ((adjacency + adjacency.T) > 0).double()
    return adjacency


def normalise_eigenvectors(eigvecs: Tensor, eigvals: Tensor, norm: str, eps: float = 1e-12) -> Tensor:
    r"""Scale each column of [n, k] by the named norm; the ``wavelength`` ones also divide by
    :math:`\sqrt\lambda`.

    A zero eigenvalue has no wavelength, so it divides by 1.
    """
    if norm == "none" or eigvecs.numel() == 0:
        return eigvecs
    size = eigvecs.abs()
    frequency = torch.where(eigvals > _ZERO, eigvals.clamp_min(0).sqrt(), 1.0)
    largest = size.amax(0).clamp_min(eps)
    if norm == "L1":
        return eigvecs / size.sum(0).clamp_min(eps)
    if norm == "L2":
        return eigvecs / eigvecs.norm(dim=0).clamp_min(eps)
    if norm == "abs-max":
        return eigvecs / largest
    if norm == "wavelength":
        return eigvecs * math.pi / (2 * largest * frequency)
    if norm == "wavelength-asin":
        return torch.asin((eigvecs / largest).clamp(-1, 1)) / frequency
    if norm == "wavelength-soft":
        return eigvecs / ((size.softmax(0) * size).sum(0).clamp_min(eps) * frequency)
    raise ValueError(f"eigvec_norm is {norm!r}; choose one of {', '.join(EIGVEC_NORMS)}")


def random_walk_diagonal(edge_index: Tensor, num_nodes: int, times: Sequence[int]) -> Tensor:
    r"""Probability of being back after t steps, :math:`[(D^{-1}A)^t]_{vv}`, for every t: [n, len(times)].

    Only powers up to half of the largest time are formed, :math:`\operatorname{diag}(P^{a+b})_v = \sum_u
    P^a_{vu} P^b_{uv}`, each by one sparse product. An isolated node never returns: its row is 0.

    >>> triangle = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    >>> random_walk_diagonal(triangle, 3, [1, 2, 3])[0]
    tensor([0.0000, 0.5000, 0.2500])
    """
    source, target = edge_index
    degree = torch.zeros(num_nodes, dtype=torch.float64)
    degree.index_add_(0, source, torch.ones(source.numel(), dtype=torch.float64))
    weight = 1.0 / degree[source]
    powers = [torch.eye(num_nodes, dtype=torch.float64)]
    for _ in range((max(times) + 1) // 2):
        step = weight[:, None] * powers[-1][target]
        powers.append(torch.zeros_like(powers[0]).index_add_(0, source, step))
    columns = [(powers[(t + 1) // 2] * powers[t // 2].T).sum(1) for t in times]
    return torch.stack(columns, dim=1).float()


class AddLaplacianEigen(BaseTransform):
    """Stores ``eigvals_<name>`` and ``eigvecs_<name>`` (flat, see the module) of :func:`laplacian_eigen`."""

    version = 1

    def __init__(
        self, name: str, laplacian_norm: str, eigvec_norm: str, max_freqs: int, which: str = "smallest"
    ) -> None:
        for key, value, choices in (
            ("laplacian_norm", laplacian_norm, LAPLACIAN_NORMS),
            ("eigvec_norm", eigvec_norm, EIGVEC_NORMS),
            ("which", which, SPECTRUM_ENDS),
        ):
            if value not in choices:
                raise ValueError(f"{key} is {value!r}; choose one of {', '.join(choices)}")
        self.name = name
        self.laplacian_norm = laplacian_norm
        self.eigvec_norm = eigvec_norm
        self.max_freqs = max_freqs
        self.which = which

    def forward(self, data: Data) -> Data:
        """Add the two attributes to one graph."""
        eigvals, eigvecs = laplacian_eigen(
            data.edge_index, data.num_nodes, self.laplacian_norm, self.eigvec_norm, self.max_freqs, self.which
        )
        data[f"eigvals_{self.name}"] = eigvals
        data[f"eigvecs_{self.name}"] = eigvecs.flatten()
        return data

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(name={self.name}, laplacian_norm={self.laplacian_norm}, "
            f"eigvec_norm={self.eigvec_norm}, max_freqs={self.max_freqs}, which={self.which}, "
            f"version={self.version})"
        )


class AddRandomWalkDiagonal(BaseTransform):
    """Stores ``pestat_<name>`` [n, len(times)] of :func:`random_walk_diagonal`."""

    version = 1

    def __init__(self, name: str, times: Sequence[int]) -> None:
        if len(times) == 0 or min(times) < 1:
            raise ValueError(f"{name} needs at least one time, each at least 1; got {list(times)}")
        self.name = name
        self.times = tuple(int(t) for t in times)

    def forward(self, data: Data) -> Data:
        """Add the attribute to one graph."""
        data[f"pestat_{self.name}"] = random_walk_diagonal(data.edge_index, data.num_nodes, self.times)
        return data

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name}, times={list(self.times)}, version={self.version})"
