"""What the encodings on Laplacian eigenvectors share: the transform, and the eigenpairs of a batch."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.graphgym.config import cfg as active_cfg
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.encoders.base import PosEncEncoder, graph_of_nodes
from graphgps_pearl.encoders.ragged import Pairs
from graphgps_pearl.encoders.transforms import AddLaplacianEigen
from graphgps_pearl.errors import DataError
from graphgps_pearl.memory import require_memory


class EigenPairs(NamedTuple):
    """Eigenvalues [sum of k_i], eigenvectors [R] and what says which row is whose."""

    values: Tensor
    vectors: Tensor
    pairs: Pairs


class SpectralEncoder(PosEncEncoder):
    """Base of the encodings that read ``posenc_<name>.eigen``."""

    fewer_rows: ClassVar[bool] = True  #: whether fewer eigenvectors are fewer rows

    def __init__(self, dim_emb: int, expand_x: bool = True, cfg: Any = None) -> None:
        cfg = active_cfg if cfg is None else cfg
        super().__init__(dim_emb, expand_x, cfg)
        settings = cfg[f"posenc_{self.name}"]
        self.max_slots = self.slots(settings.eigen)
        self.bytes_of_a_row = self.row_bytes(settings)

    @classmethod
    def transforms(cls, settings: Any) -> list[BaseTransform]:
        """The eigenpairs, under the name of this encoding: two encodings may need different ones."""
        eigen = settings.eigen
        return [
            AddLaplacianEigen(cls.name, eigen.laplacian_norm, eigen.eigvec_norm, eigen.max_freqs, eigen.which)
        ]

    @classmethod
    def slots(cls, eigen: Any) -> int | None:
        """Most eigenvectors of a graph under ``posenc_<name>.eigen``; None if all are used."""
        return eigen.max_freqs or None

    @classmethod
    def row_bytes(cls, settings: Any) -> int:
        """Bytes that a training step keeps for a row, where it can be many in all."""
        return 0

    @staticmethod
    def num_rows(pairs: Pairs) -> Tensor:
        """How many rows there are: here one for a node and an eigenvector."""
        return (pairs.slots * pairs.sizes).sum()

    def eigen(self, batch: Batch) -> EigenPairs:
        """The eigenpairs that the transform has stored."""
        pairs = Pairs.of(*graph_of_nodes(batch), self.max_slots)
        values = self.precomputed(batch, f"eigvals_{self.name}")
        vectors = self.precomputed(batch, f"eigvecs_{self.name}")
        if vectors.numel() != pairs.node.numel():
            raise DataError(
                f"posenc_{self.name}.eigen needs {pairs.node.numel()} eigenvector entries in this batch, "
                f"{vectors.numel()} are stored: prepare the data again with required_transforms(cfg)"
            )
        if self.bytes_of_a_row and torch.is_grad_enabled():
            device = "gpu" if vectors.is_cuda else "cpu"
            largest = int(pairs.sizes.max()) if pairs.sizes.numel() else 0
            group = f"posenc_{self.name}"
            what = f"{group}: a batch of {pairs.sizes.numel()} graphs, the largest of {largest} nodes,"
            fewer = f" or {group}.eigen.max_freqs (0 is all)" if self.fewer_rows else ""
            remedy = f"lower train.batch_size{fewer}, or use RPEARL"
            require_memory(self.bytes_of_a_row * float(self.num_rows(pairs)), device, what, remedy)
        return EigenPairs(values, vectors, pairs)
