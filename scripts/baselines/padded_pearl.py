r"""PEARL as the paper's code computes it: a loop over graphs with dense Laplacians, then padded rows.

The samples of graph g are a matrix [n_g, M_g]. Its taps come from the dense normalised Laplacian; the first
layer and its norm run graph by graph; the rows of all graphs are padded to [N, max M, F] and go through GIN
layers whose batch norm picks the real rows by a mask. B-PEARL has M_g = n_g, so that most of it is padding
where sizes differ; R-PEARL has the same M everywhere and needs no mask.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PaddedPEARL(nn.Module):
    """Φ on padded rows, then the sum over the samples.

    Args:
        dim_pe, hidden_dim, num_layers, num_taps, mlp_layers, mlp_hidden: sizes, as of the fast encodings.
        num_samples: M of R-PEARL; None for the standard basis.
    """

    def __init__(
        self,
        dim_pe: int,
        hidden_dim: int,
        num_layers: int,
        num_taps: int,
        mlp_layers: int,
        mlp_hidden: int,
        num_samples: int | None = None,
    ) -> None:
        super().__init__()
        self.num_taps, self.num_samples = num_taps, num_samples
        self.lift, self.lift_norm = nn.Linear(num_taps, dim_pe), nn.BatchNorm1d(dim_pe)
        widths = [dim_pe, *[hidden_dim] * (num_layers - 1), dim_pe]
        self.layers = nn.ModuleList(_PaddedGIN(a, b, mlp_layers, mlp_hidden) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    def forward(self, edge_index: Tensor, laplacians: list[Tensor]) -> Tensor:
        """The encoding [N, dim_pe]; the dense Laplacians [n_g, n_g] were made with the data."""
        longest = max(map(len, laplacians))
        rows, masks = [], []
        for laplacian in laplacians:
            n = len(laplacian)
            signal = torch.eye(n) if self.num_samples is None else torch.randn(n, self.num_samples)
            x = self._first_layer(laplacian, signal)  # [n, M, F]
            if self.num_samples is None:
                x = torch.cat([x, x.new_zeros(n, longest - n, x.size(2))], dim=1)
                masks.append((torch.arange(longest) < n).expand(n, -1))
            rows.append(x)
        x = torch.cat(rows)  # [N, max M, F]
        mask = torch.cat(masks) if masks else None
        for layer, norm in zip(self.layers, [*self.norms, None], strict=True):
            x = layer(x, edge_index, mask)
            if mask is not None:
                x[~mask] = 0
            if norm is not None:
                x = _normalise(norm, x, mask, (0, 2, 1))
        return (x if mask is None else x * mask.unsqueeze(-1)).sum(1)

    def _first_layer(self, laplacian: Tensor, signal: Tensor) -> Tensor:
        powers = [signal]
        for _ in range(self.num_taps - 1):
            powers.append(laplacian @ powers[-1])
        x = self.lift(torch.stack(powers, dim=-1))
        return F.relu(_normalise(self.lift_norm, x, None, (1, 2, 0)))


class _PaddedGIN(nn.Module):
    def __init__(self, in_dim: int, out_dim: int, mlp_layers: int, mlp_hidden: int) -> None:
        super().__init__()
        widths = [in_dim, *[mlp_hidden] * (mlp_layers - 1), out_dim]
        self.eps = nn.Parameter(torch.zeros(1))
        self.linears = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in widths[1:-1])

    def forward(self, x: Tensor, edge_index: Tensor, mask: Tensor | None) -> Tensor:
        source, target = edge_index
        x = (1 + self.eps) * x + torch.zeros_like(x).index_add(0, target, x[source])
        for linear, norm in zip(self.linears[:-1], self.norms, strict=True):
            x = F.relu(_normalise(norm, linear(x), mask, (1, 2, 0)))
        return self.linears[-1](x)


def _normalise(norm: nn.Module, x: Tensor, mask: Tensor | None, order: tuple[int, int, int]) -> Tensor:
    """Batch norm of the real rows, in place; without padding on the whole tensor, its features in the middle.

    ``order`` brings the features there and leaves the rest where the paper's code has it.
    """
    if mask is None:
        back = [order.index(i) for i in range(3)]
        return norm(x.permute(order)).permute(back)
    x[~mask] = 0
    x[mask] = norm(x[mask])
    return x


def sym_laplacian(edge_index: Tensor, n: int) -> Tensor:
    """I - D^-1/2 A D^-1/2, dense."""
    adjacency = torch.zeros(n, n)
    adjacency[edge_index[1], edge_index[0]] = 1
    root = adjacency.sum(1).clamp(min=1).rsqrt()
    return torch.eye(n) - root[:, None] * adjacency * root
