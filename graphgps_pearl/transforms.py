"""PEARL as a PyG transform: encodings that are computed once and stored with the graph."""

from __future__ import annotations

import copy
import zlib

import torch
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from graphgps_pearl.pearl import BPEARL, RPEARL


class AddPEARL(BaseTransform):
    r"""Adds the PEARL encoding to the nodes of a graph, as PyG's ``AddRandomWalkPE`` adds RWSE.

    The weights are fixed: those of a trained module, or random ones, which already tell nodes of different
    structure apart. To learn them, put the module into the network instead.

    A frozen copy of ``encoding`` in evaluation mode is used, so training it further changes nothing here and
    a graph has one encoding, whatever batch it is in. The copy's weights are part of ``repr``, by which PyG
    notices that a dataset was processed with another ``pre_transform``.

    Args:
        encoding: the module, with the weights to use.
        attr_name: attribute that receives the encoding, :obj:`[N, dim_pe]`; None: append it to ``x``.

    >>> from torch_geometric.data import Data
    >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    >>> transform = AddPEARL(BPEARL(dim_pe=8, hidden_dim=8, num_layers=2))
    >>> p = transform(path).pearl_pe
    >>> p.shape, torch.allclose(p[0], p[2])
    (torch.Size([3, 8]), True)
    """

    def __init__(self, encoding: BPEARL | RPEARL, attr_name: str | None = "pearl_pe") -> None:
        if not isinstance(encoding, BPEARL | RPEARL):
            raise ValueError(f"encoding must be a BPEARL or an RPEARL, got {type(encoding).__name__}")
        self.encoding = copy.deepcopy(encoding).eval().requires_grad_(False)
        if isinstance(self.encoding, BPEARL):
            self.encoding.return_pairs = False
        self.attr_name = attr_name

    def forward(self, data: Data) -> Data:
        """``data`` with the encoding."""
        with torch.no_grad():
            pe = self.encoding(data)
        if self.attr_name is not None:
            data[self.attr_name] = pe
        elif data.x is None:
            data.x = pe
        else:
            x = data.x.unsqueeze(1) if data.x.dim() == 1 else data.x
            data.x = torch.cat([x, pe.to(x.device, x.dtype if x.is_floating_point() else pe.dtype)], dim=1)
        return data

    def __repr__(self) -> str:
        checksum = 0
        for value in self.encoding.state_dict().values():
            data = value.cpu().flatten().view(torch.uint8)  # numpy has no bfloat16
            checksum = zlib.crc32(data.numpy().tobytes(), checksum)
        name = type(self).__name__
        return f"{name}({self.encoding!r}, attr_name={self.attr_name!r}, weights={checksum:08x})"
