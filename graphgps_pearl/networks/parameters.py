"""Trainable parameters, part by part, and the statistics of the data that a network keeps."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch_geometric.nn.aggr import DegreeScalerAggregation

from graphgps_pearl.layers import degree_histogram

PARTS = ("encoder", "local", "attention", "feed-forward", "head", "other")
# Children of networks that do not say themselves what their parts are; GraphGym's names.
_USUAL_PARTS = {"encoder": "encoder", "post_mp": "head"}


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Number of trainable parameters by part, in the order of :data:`PARTS`.

    A module says in ``parts`` which part each of its children belongs to; what none claims is ``other``,
    which is left out where it is empty. The counts add up to all trainable parameters, each counted once.
    """
    part_of: dict[int, str] = {}
    for module in model.modules():
        claims = getattr(module, "parts", _USUAL_PARTS if module is model else {})
        for child, part in claims.items():
            owned = getattr(module, child, None)
            for parameter in owned.parameters() if isinstance(owned, nn.Module) else ():
                part_of.setdefault(id(parameter), part)
    counts = dict.fromkeys(PARTS, 0)
    for parameter in model.parameters():
        if parameter.requires_grad:
            counts[part_of.get(id(parameter), "other")] += parameter.numel()
    if not counts["other"]:
        del counts["other"]
    return counts


def needs_degrees(model: nn.Module) -> bool:
    """Whether the network has PNA layers, which need the degrees of the training data."""
    return any(isinstance(module, DegreeScalerAggregation) for module in model.modules())


def set_degrees(model: nn.Module, histogram: Sequence[int] | Tensor) -> None:
    """Tell every PNA layer how many nodes of the training data have in-degree 0, 1, 2, ...

    Networks without PNA layers stay as they are.
    """
    counts = degree_histogram(histogram)
    for module in model.modules():
        if isinstance(module, DegreeScalerAggregation):
            fresh = DegreeScalerAggregation("sum", ["identity"], counts)
            module.init_avg_deg_lin, module.init_avg_deg_log = fresh.init_avg_deg_lin, fresh.init_avg_deg_log
            module.reset_parameters()
