"""Eigenvectors of the normalised Laplacian I - D^-1/2 A D^-1/2: all by dense ``eigh``, some by Lanczos."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import coo_matrix, csc_matrix, diags, eye
from scipy.sparse.linalg import eigsh
from torch import Tensor

from baselines.padded_pearl import sym_laplacian

Graph = tuple[Tensor, int]  # edge_index [2, E], number of nodes
COUNT = 8  # eigenvectors that Lanczos finds, the smallest


def dense(graphs: list[Graph]) -> Callable[[], list[Tensor]]:
    """All eigenvectors of every graph; the Laplacians are made beforehand."""
    laplacians = [sym_laplacian(*graph) for graph in graphs]
    return lambda: [torch.linalg.eigh(laplacian).eigenvectors for laplacian in laplacians]


def lanczos(graphs: list[Graph], inverse: bool) -> Callable[[], list[np.ndarray]]:
    """The COUNT smallest of every graph; graphs that are :func:`too_small` have all of them by ``eigh``.

    Args:
        graphs: the graphs.
        inverse: iterate with the inverse, which is five times faster on peptides; the inverse of a large
            graph that is no chain does not stay sparse.
    """
    laplacians = [_sparse(*graph) for graph in graphs]
    shift = {"sigma": -0.01} if inverse else {"which": "SA"}

    def vectors(laplacian: csc_matrix) -> np.ndarray:
        if too_small(laplacian.shape[0]):
            return np.linalg.eigh(laplacian.toarray())[1]
        # to machine precision, as PyG does: with a tolerance it misses eigenvalues that occur several times
        return eigsh(laplacian, k=COUNT, **shift)[1]

    return lambda: [vectors(laplacian) for laplacian in laplacians]


def too_small(num_nodes: int) -> bool:
    """Lanczos finds fewer eigenvectors than there are nodes."""
    return num_nodes <= COUNT


def _sparse(edge_index: Tensor, n: int) -> csc_matrix:
    source, target = edge_index.numpy()
    adjacency = coo_matrix((np.ones(len(source)), (target, source)), shape=(n, n)).tocsr()
    root = diags(1 / np.asarray(adjacency.sum(1)).ravel().clip(1) ** 0.5)
    return (eye(n) - root @ adjacency @ root).tocsc()
