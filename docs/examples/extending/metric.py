"""A metric in one file: ``custom_metrics: [medae]`` reports it, ``metric_best: medae`` selects by it."""

import torch
from torch import Tensor
from torch_geometric.graphgym.register import register_metric


@register_metric("medae")
def median_absolute_error(true: list[Tensor], pred: list[Tensor], task_type: str) -> float:
    """The median of the absolute errors where there is a label; arguments are lists of batches."""
    return float((torch.cat(pred) - torch.cat(true)).abs().nanmedian())
