"""The skeleton that all networks here share: encoder, layers, head."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn.norm import BatchNorm

from graphgps_pearl.contracts import EncoderOutput, Prepared, PreparesBatch
from graphgps_pearl.errors import DataError
from graphgps_pearl.layers import (
    Activation,
    Dropout,
    Layout,
    MultiheadAttention,
    activation,
    squared_distance,
)


class PreLayer(nn.Module):
    """A layer before message passing, GraphGym's: act(drop(norm(W x))), scaled to unit length if asked.

    Args:
        dim_in: width before.
        dim_out: width after.
        act: activation.
        dropout: probability.
        batch_norm: whether to normalise; if so, W has no bias.
        unit_rows: whether every row is divided by its length.
        eps: of the batch norm.
        momentum: of the batch norm.
    """

    def __init__(
        self,
        dim_in: int,
        dim_out: int,
        act: Activation = "relu",
        dropout: float = 0.0,
        batch_norm: bool = True,
        unit_rows: bool = False,
        eps: float = 1e-5,
        momentum: float = 0.1,
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(dim_in, dim_out, bias=not batch_norm)
        self.norm = (
            BatchNorm(dim_out, eps, momentum, allow_single_element=True) if batch_norm else nn.Identity()
        )
        self.dropout = Dropout(dropout)
        self.act = activation(act)
        self.unit_rows = unit_rows

    def forward(self, x: Tensor) -> Tensor:
        """[N, dim_in] to [N, dim_out]."""
        x = self.linear(x.to(self.linear.weight.dtype))  # features that no encoder has read may be integers
        x = self.act(self.dropout(self.norm(x)))
        return F.normalize(x, p=2.0, dim=1) if self.unit_rows else x


class GraphNetwork(nn.Module):
    """Encode, pass through the layers, predict.

    With ``injected_dim`` D > 0 every layer l first adds the encoding again: X ← X + P W_l, where P [N, D] is
    ``per_layer`` of the batch's :class:`~graphgps_pearl.contracts.EncoderOutput`.

    Args:
        encoder: batch to batch; afterwards ``x`` is [N, F] and ``edge_attr`` [E, D_e].
        layers: each called as ``x, edge_attr = layer(x, edge_index, edge_attr, layout)``, with ``attn_bias``
            where the encoder's output has an attention bias.
        head: batch to (prediction, target).
        dim: F; only read where ``injected_dim`` > 0.
        pre_mp: layers between encoder and message passing, ``[N, *]`` to [N, F].
        injected_dim: D.
        equivstable_pe: whether the layers weigh messages by the distance of ``batch.pe_EquivStableLapPE``.
    """

    # Which part of the parameter budget each child belongs to.
    parts: ClassVar[dict[str, str]] = {"encoder": "encoder", "injections": "encoder", "post_mp": "head"}

    def __init__(
        self,
        encoder: nn.Module,
        layers: Iterable[nn.Module],
        head: nn.Module,
        dim: int = 0,
        pre_mp: nn.Module | None = None,
        injected_dim: int = 0,
        equivstable_pe: bool = False,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pre_mp = pre_mp
        self.layers = nn.ModuleList(layers)
        self.injections = nn.ModuleList(
            nn.Linear(injected_dim, dim, bias=False) for _ in self.layers if injected_dim > 0
        )
        self.post_mp = head
        self.equivstable_pe = equivstable_pe

    def forward(self, batch: Any) -> tuple[Tensor, Tensor | None]:
        """A batch of graphs (or one graph) to (prediction, target); the batch itself stays as it was."""
        batch = self.encoder(_own_copy(batch))
        edge_index, distance = batch.edge_index, None
        if self.equivstable_pe:
            if "pe_EquivStableLapPE" not in batch:
                raise DataError("the network reads batch.pe_EquivStableLapPE, and the encoder gives none")
            distance = squared_distance(batch.pe_EquivStableLapPE, edge_index)
        layout = Prepared.of(batch).get("layout")
        if layout is None:
            layout = Layout.of(batch.batch, batch.num_graphs, distance)
        else:  # what is cached in this pass may hold its graph, and the batch outlives it
            layout = replace(layout, distance=distance, _cache=dict(layout._cache))
        given = EncoderOutput.of(batch)
        batch.x, batch.edge_attr = self.run_layers(batch.x, edge_index, batch.edge_attr, layout, given)
        return self.post_mp(batch)

    def run_layers(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None,
        layout: Layout,
        given: EncoderOutput,
    ) -> tuple[Tensor, Tensor | None]:
        """Encoded nodes ``[N, *]`` and edges ``[E, D]`` to what the head reads."""
        if len(self.injections) and given.per_layer is None:
            raise DataError("the network adds an encoding before every layer, and the encoder gives none")
        if len(given.attention_bias) not in (0, 1, len(self.layers)):
            raise ValueError(
                f"the encoder gives an attention bias for each of {len(given.attention_bias)} layers, and "
                f"the network has {len(self.layers)}; give one for all, or one for each"
            )
        if self.pre_mp is not None:
            x = self.pre_mp(x)
        for number, layer in enumerate(self.layers):
            if len(self.injections):
                x = x + self.injections[number](given.per_layer)
            bias = given.bias_of_layer(number)
            x, edge_attr = layer(
                x, edge_index, edge_attr, layout, **({} if bias is None else {"attn_bias": bias})
            )
        return x, edge_attr


def compile_layers(network: GraphNetwork, **options: Any) -> None:
    """Compile every layer with torch.compile, in place; names and state of the network stay.

    Encodings are not compiled: B-PEARL's sizes depend on the graphs, and its sparse products and hand-written
    kernels are operations that the compiler cannot fuse.
    """
    # The layers share their code, and Dynamo counts compilations by code: one for each, and for some groups.
    limit = torch._dynamo.config.recompile_limit
    torch._dynamo.config.recompile_limit = max(limit, 8 * len(network.layers))
    for layer in network.layers:
        layer.compile(dynamic=True, **options)


class Preparation:
    """For a loader: computes on the CPU what a network needs of the bare graphs of a batch, and attaches it.

    No weights are read. It has copies of the modules concerned without memory for weights, so that it can be
    sent to other processes.

    Args:
        network: the network.
        device: the kind of device that the batches are for, ``cpu`` or ``cuda``.
    """

    def __init__(self, network: GraphNetwork, device: str) -> None:
        self.device, self.dtype = device, next(network.parameters()).dtype
        self.groups = any(isinstance(module, MultiheadAttention) for module in network.modules())
        self.modules = [
            copy.deepcopy(module).to("meta")
            for module in network.modules()
            if isinstance(module, PreparesBatch)
        ]

    def __call__(self, batch: Any) -> None:
        """Prepare a batch."""
        prepared = Prepared({})
        layout = Layout.of(batch.batch, batch.num_graphs)
        if self.groups:
            layout.group(self.device)
            layout.padding(self.dtype)
        prepared.set("layout", layout)
        for module in self.modules:
            module.prepare_batch(batch, prepared)
        prepared.attach(batch)


def preparation(network: nn.Module, device: str) -> Preparation | None:
    """The :class:`Preparation` for a network; None if it is not one of ours."""
    return Preparation(network, device) if isinstance(network, GraphNetwork) else None


def _own_copy(batch: Any) -> Any:
    """A shallow copy, as a batch: encoders and heads write into it, and the caller's stays usable."""
    if batch.batch is None:
        batch = Batch.from_data_list([batch])
    batch = copy.copy(batch)
    for key in ("batch", "edge_index"):
        if not batch[key].is_floating_point():  # 32 bits are enough for PEARL, not for PyG's sums
            batch[key] = batch[key].long()
    return batch
