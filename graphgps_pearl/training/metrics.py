"""Metrics of a whole split, computed from every prediction at once by torchmetrics.

A mean of batch means depends on the batch size; ours does not: predictions and labels of the epoch
are kept (they are small; of a node's exclusive classes the predicted one) and the metric is computed once.
Missing labels (NaN, or -1 for a class) are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import torch
import torchmetrics.functional as tm
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.utilities import dim_zero_cat

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.vocabulary import EXTRA_METRICS, METRICS, NAME_LENGTH, NAME_WORDS, SMALLER_IS_BETTER

#: Mean and standard deviation [D] of targets that were standardised.
Moments = tuple[Tensor, Tensor]
#: A metric registered with GraphGym, of (labels, predictions, task_type), the first two lists of batches.
Custom = Callable[[list[Tensor], list[Tensor], str], float]


class EpochMetrics(Metric):
    """Loss and metrics over all samples seen since the last ``reset``; sums over processes under DDP.

    With ``moments`` the metrics (not the loss) are those of predictions and labels in their original unit.
    ``custom`` metrics are computed from these too. ``task`` is what is predicted for, graphs, nodes or
    edges.
    """

    full_state_update = False
    preds: list[Tensor]
    trues: list[Tensor]
    loss_sum: Tensor
    count: Tensor
    mean: Tensor | None
    std: Tensor | None

    def __init__(
        self,
        task_type: str,
        moments: Moments | None = None,
        custom: Mapping[str, Custom] | None = None,
        task: str = "graph",
    ) -> None:
        super().__init__()
        self.task_type, self.task = task_type, task
        self.custom = dict(custom or {})
        self.register_buffer("mean", None if moments is None else moments[0], persistent=False)
        self.register_buffer("std", None if moments is None else moments[1], persistent=False)
        self.add_state("preds", [], dist_reduce_fx="cat")
        self.add_state("trues", [], dist_reduce_fx="cat")
        self.add_state("loss_sum", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("count", torch.zeros((), dtype=torch.long), dist_reduce_fx="sum")

    def update(self, pred: Tensor, true: Tensor, loss: Tensor) -> None:
        """Add a batch: predictions [B, D], labels [B, D] or [B], and the mean loss over its labels."""
        labels = count_labels(true)
        pred, true = pred.detach().float(), true.detach()
        if self.task == "node":
            pred, true = self._compact(pred, true)
        if self.task_type == "subtoken_prediction":
            pred, true = _words(pred), true.int()
        if true.device.type == "cpu" and true.is_shared():  # of a worker: each keeps a file open
            true = true.clone()
        self.preds.append(pred)
        self.trues.append(true)
        self.loss_sum += loss.detach().double() * labels
        self.count += labels

    def _compact(self, pred: Tensor, true: Tensor) -> tuple[Tensor, Tensor]:
        """Labelled nodes alone, and no logits where classes do: COCO-SP has 54 million nodes and 81
        classes."""
        if self.task_type == "classification":
            known = true >= 0
            pred = pred if self.custom else pred.argmax(dim=-1).int()
            return pred[known], true[known] if self.custom else true[known].int()
        known = (~torch.isnan(true)).view(len(true), -1).any(dim=1)
        return pred[known], true[known]

    def running_state(self) -> dict[str, Tensor]:
        """All that :meth:`update` has gathered, as plain tensors."""
        if not self.preds:
            return {}
        preds, trues = dim_zero_cat(self.preds), dim_zero_cat(self.trues)
        return {
            "preds": preds,
            "trues": trues,
            "loss_sum": self.loss_sum.clone(),
            "count": self.count.clone(),
        }

    def add_running_state(self, state: dict[str, Tensor]) -> None:
        """Add what another :class:`EpochMetrics` had gathered."""
        if state:
            self.preds.append(state["preds"].to(self.device))
            self.trues.append(state["trues"].to(self.device))
            self.loss_sum += state["loss_sum"].to(self.device)
            self.count += state["count"].to(self.device)
            self._update_count += 1

    def compute(self) -> dict[str, float]:
        """Metric values by name, ``loss`` first; empty if nothing was seen. All are NaN where the loss is."""
        if isinstance(self.preds, list) and not self.preds:  # several processes join them to a tensor
            return {}
        values = {"loss": float(self.loss_sum / self.count)}
        if math.isnan(values["loss"]):
            # A prediction is NaN. Metrics that compare may be finite all the same, and choose this epoch.
            names = (*metric_names(self.task_type, self.task), *self.custom)
            return values | dict.fromkeys(names, math.nan)
        pred, true = self._original()
        values |= compute_metrics(pred, true, self.task_type, self.task)
        # GraphGym hands its metrics lists of batches.
        return values | {
            name: float(metric([true], [pred], self.task_type)) for name, metric in self.custom.items()
        }

    def per_target(self) -> list[dict[str, float]]:
        """The metrics of each target by itself; empty for classes, which are one target."""
        if self.task_type in ("classification", "subtoken_prediction") or self.task == "edge":
            return []
        with self.sync_context():
            if isinstance(self.preds, list) and not self.preds:
                return []
            pred, true = self._original()
        columns = zip(pred.split(1, dim=1), true.view_as(pred).split(1, dim=1), strict=True)
        return [compute_metrics(p, t, self.task_type, self.task) for p, t in columns]

    def _original(self) -> tuple[Tensor, Tensor]:
        """Predictions and labels of all processes, in the targets' original unit where it is known."""
        pred, true = dim_zero_cat(self.preds), dim_zero_cat(self.trues)
        if self.mean is None or self.std is None:
            return pred, true
        return pred * self.std + self.mean, true.view_as(pred) * self.std + self.mean


def no_rows(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The :meth:`EpochMetrics.running_state` of the same kind that has gathered nothing."""
    return {name: value[:0] if value.dim() else torch.zeros_like(value) for name, value in state.items()}


def count_labels(true: Tensor) -> Tensor:
    """How many labels exist: the number that the mean loss of a batch is a mean over."""
    return (~torch.isnan(true)).sum() if true.is_floating_point() else (true >= 0).sum()


def metric_names(task_type: str, task: str = "graph") -> tuple[str, ...]:
    """The metrics that are computed for a kind of target and for what it is predicted for."""
    return (*METRICS[task_type], *EXTRA_METRICS.get((task, task_type), ()))


def compute_metrics(pred: Tensor, true: Tensor, task_type: str, task: str = "graph") -> dict[str, float]:
    """All metrics of a task; NaN where a metric is undefined on these labels."""
    if task_type == "regression":
        return _regression(pred, true.view_as(pred))
    if task == "edge":
        values = _binary(pred[:, :1], true.view(-1, 1)) | _ranking(pred, true)
    elif task_type == "subtoken_prediction":
        values = _names(_words(pred), true)
    elif task_type == "classification":
        values = _multiclass(pred, true.view(-1))
    else:
        values = _binary(pred, true.view_as(pred))
    return {name: values[name] for name in metric_names(task_type, task)}


def custom_metrics(names: Sequence[str]) -> dict[str, Custom]:
    """What ``custom_metrics`` names among the metrics registered with GraphGym's ``register_metric``."""
    from torch_geometric.graphgym.register import metric_dict

    for name in names:
        if name not in metric_dict:
            near = get_close_matches(name, metric_dict, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"custom_metrics: {name!r} is not registered with register_metric{hint}")
    return {name: metric_dict[name] for name in names}


def best_metric(
    metric_best: str, metric_agg: str, task_type: str, custom: Sequence[str] = (), task: str = "graph"
) -> tuple[str, bool]:
    """The name of the metric that selects models and whether larger is better.

    ``metric_agg`` is GraphGPS's argmin or argmax; with ``metric_best: auto`` the task decides both.
    """
    known = (*metric_names(task_type, task), *custom)
    if metric_best == "auto":
        return known[0], known[0] not in SMALLER_IS_BETTER
    if metric_best not in (*known, "loss"):
        raise ConfigError(
            f"metric_best: {metric_best!r} is no metric of dataset.task_type {task_type!r}; "
            f"choose auto, loss, {', '.join(known)}"
        )
    return metric_best, metric_agg == "argmax"


def _regression(pred: Tensor, true: Tensor) -> dict[str, float]:
    valid = ~torch.isnan(true)
    if not valid.any():
        return dict.fromkeys(METRICS["regression"], float("nan"))
    return {
        "mae": float(tm.mean_absolute_error(pred[valid], true[valid])),
        "rmse": float(tm.mean_squared_error(pred[valid], true[valid], squared=False)),
        # It subtracts sums of squares: in float32 nothing is left where the mean is far from zero.
        "r2": _mean_over_labels(tm.r2_score, pred.double(), true.double()),
        "spearmanr": _mean_over_labels(tm.spearman_corrcoef, pred, true),
    }


def _mean_over_labels(metric: Callable[[Tensor, Tensor], Tensor], pred: Tensor, true: Tensor) -> float:
    """Mean of a per-label metric over the labels (columns) with at least two distinct values."""
    values = []
    for p, t in zip(pred.T, true.T, strict=True):
        valid = ~torch.isnan(t)
        if valid.sum() >= 2 and t[valid].min() < t[valid].max():
            values.append(metric(p[valid], t[valid]))
    return float(torch.stack(values).mean()) if values else float("nan")


def _multiclass(pred: Tensor, true: Tensor) -> dict[str, float]:
    """Logits [B, C] or predicted classes [B]. ``accuracy-SBM`` is the mean over the classes, as for PATTERN
    and CLUSTER."""
    known = true >= 0
    if not known.any():
        return dict.fromkeys(("accuracy", "f1", "accuracy-SBM"), float("nan"))
    pred, true = pred[known], true[known]
    # A class that neither occurs nor is predicted counts in no mean.
    classes = pred.size(-1) if pred.dim() > 1 else max(2, int(torch.maximum(pred.max(), true.max())) + 1)

    def value(metric: Callable[..., Tensor], average: str) -> float:
        return float(metric(pred, true, classes, average=average))

    return {
        "accuracy": value(tm.classification.multiclass_accuracy, "micro"),
        "f1": value(tm.classification.multiclass_f1_score, "macro"),
        "accuracy-SBM": value(tm.classification.multiclass_accuracy, "macro"),
    }


def _words(pred: Tensor) -> Tensor:
    """Logits [B, 5 * words] to the numbers of the words [B, 5]; numbers stay as they are."""
    if pred.size(1) == NAME_LENGTH:
        return pred
    return pred.view(len(pred), NAME_LENGTH, NAME_WORDS).argmax(dim=-1).int()


def _names(pred: Tensor, true: Tensor) -> dict[str, float]:
    """Precision, recall and F1 of the sets of words, as means over the names, as OGB does.

    ``pred`` [B, 5] are numbers of words, of which those before the first end count; the columns of ``true``
    behind the fifth are all different words of the name, as -2 - number, and -1.
    """
    named = (pred == NAME_WORDS - 1).cumsum(dim=1) == 0
    for k in range(1, NAME_LENGTH):  # a word that occurs again counts once
        named[:, k] &= ~((pred[:, :k] == pred[:, k : k + 1]) & named[:, :k]).any(dim=1)
    reference = -2 - true[:, NAME_LENGTH:]
    right = ((pred.unsqueeze(2) == reference.unsqueeze(1)).any(dim=2) & named).sum(dim=1).double()
    precision = right / named.sum(dim=1).clamp(min=1)
    recall = right / (reference >= 0).sum(dim=1).clamp(min=1)
    f1 = torch.where(right > 0, 2 * precision * recall / (precision + recall).clamp(min=1e-12), 0.0)
    return {name: float(v.mean()) for name, v in (("f1", f1), ("precision", precision), ("recall", recall))}


def _binary(pred: Tensor, true: Tensor) -> dict[str, float]:
    """Binary and multilabel alike: a mean over the labels that occur with both values, as OGB does."""
    prob = torch.sigmoid(pred)

    def mean(metric: Callable[[Tensor, Tensor], Tensor], scores: Tensor) -> float:
        return _mean_over_labels(lambda p, t: metric(p, t.long()), scores, true)

    valid = ~torch.isnan(true)
    hit = ((prob > 0.5) == (true > 0.5))[valid]
    return {
        "auc": mean(tm.classification.binary_auroc, _by_order(pred)),
        "ap": mean(tm.classification.binary_average_precision, _by_order(pred)),
        "accuracy": float(hit.float().mean()) if valid.any() else float("nan"),
        "f1": mean(tm.classification.binary_f1_score, prob),
        "accuracy-SBM": _multiclass((prob > 0.5)[valid].long(), (true > 0.5)[valid].long())["accuracy-SBM"],
    }


def _by_order(pred: Tensor) -> Tensor:
    """Numbers in [0, 1] in the order of the logits: a sigmoid would make all confident ones 1."""
    return pred.unique(return_inverse=True)[1].double() / max(1, pred.numel())


def _ranking(pred: Tensor, true: Tensor) -> dict[str, float]:
    """Reciprocal rank and hits of the edges, as means over each graph's edges and then over the graphs.

    ``pred`` [L, 3] has logit, rank and 1 / (edges of the graph)."""
    edges = true.view(-1) > 0.5
    rank, share = pred[edges, 1].double(), pred[edges, 2].double()
    graphs = share.sum()
    values = {"mrr": 1 / rank, **{f"hits@{k}": (rank <= k).double() for k in (1, 3, 10)}}
    return {name: float((value * share).sum() / graphs) for name, value in values.items()}


def require_defined(metric: str, split: str, graphs: Any) -> None:
    """Make sure that the labels of the split that chooses the epoch do not leave the metric undefined."""
    if metric not in ("auc", "ap", "r2", "spearmanr") or graphs[0].y is None:
        return
    labels = torch.cat([graph.y.float().view(len(graph.y), -1) for graph in graphs])
    if not any(column[~column.isnan()].unique().numel() > 1 for column in labels.t()):
        raise ConfigError(
            f"metric_best: {metric} is not defined on split {split!r}, whose labels are all the same; use "
            f"another metric_best, dataset.split or dataset.select_split"
        )
