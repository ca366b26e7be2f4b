r"""Losses :math:`\ell(\hat y, y)` as means over the labels that exist (a missing one is NaN, or -1 for a
class).

The sum over valid labels divided by their number, so that an absent label neither pulls the
prediction nor dilutes the mean.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.vocabulary import CLASSIFICATION_LOSSES, NAME_LENGTH, NAME_WORDS, REGRESSION_LOSSES

Loss = Callable[[Tensor, Tensor], Tensor]


def masked(elementwise: Loss) -> Loss:
    """Turn an elementwise loss into its mean over the labels that are not NaN."""

    def loss(pred: Tensor, true: Tensor) -> Tensor:
        valid = ~torch.isnan(true)
        if true.device.type == "cpu" and bool(valid.all()):  # a GPU would make the host wait for the answer
            return elementwise(pred, true).mean()
        # Missing labels are replaced before the loss, not after: 0 * NaN in the backward pass is NaN.
        total = (elementwise(pred, torch.where(valid, true, pred.detach())) * valid).sum()
        return total / valid.sum().clamp(min=1)

    return loss


l1 = masked(lambda pred, true: (pred - true).abs())
mse = masked(lambda pred, true: (pred - true).square())
smooth_l1 = masked(lambda pred, true: F.smooth_l1_loss(pred, true, reduction="none"))
binary_cross_entropy = masked(
    lambda pred, true: F.binary_cross_entropy_with_logits(pred, true.clamp(0, 1), reduction="none")
)


def cross_entropy(pred: Tensor, true: Tensor, weight: Tensor | None = None) -> Tensor:
    """Softmax cross entropy of logits [B, C] against class numbers [B], -1 for a missing one."""
    true = true.view(-1)
    loss = F.cross_entropy(pred, true, weight=weight, ignore_index=-1)
    return torch.where((true >= 0).any(), loss, 0.0) if len(true) else loss  # without a label 0 / 0


def subtoken_cross_entropy(pred: Tensor, true: Tensor) -> Tensor:
    """Mean cross entropy of the words of a name: logits [B, 5 * words] against numbers in the first five
    columns of ``true`` [B, 5 + *]."""
    return F.cross_entropy(pred.view(-1, NAME_WORDS), true[:, :NAME_LENGTH].reshape(-1))


def weighted_cross_entropy(pred: Tensor, true: Tensor) -> Tensor:
    """Cross entropy where class c weighs 1 - n_c / n, n_c of the batch's n labels being c, as in GraphGPS.

    Logits [B, C] and class numbers [B]: the mean with these weights. One logit [B, 1] and labels 0 or 1 [B,
    1]: the plain mean of the weighted terms.
    """
    if not true.is_floating_point():
        classes = true.view(-1)
        counts = classes.new_zeros(pred.size(1)).index_add_(0, classes.clamp(min=0), (classes >= 0).long())
        return cross_entropy(pred, true, _class_weights(counts.to(pred.dtype)))
    known = ~torch.isnan(true)
    share = torch.stack([((true <= 0.5) & known).sum(), ((true > 0.5) & known).sum()]).to(pred.dtype)
    weight = _class_weights(share)[(true > 0.5).long()]
    loss = F.binary_cross_entropy_with_logits(pred, true.nan_to_num().clamp(0, 1), weight, reduction="none")
    return torch.where(known, loss, 0.0).sum() / known.sum().clamp(min=1)


def _class_weights(counts: Tensor) -> Tensor:
    """[C] numbers of labels to weights; a class without any weighs nothing, one that is alone weighs 1."""
    present = (counts > 0).to(counts.dtype)
    return torch.where(present.sum() < 2, present, present * (1 - counts / counts.sum()))


_REGRESSION = {"l1": l1, "mse": mse, "smoothl1": smooth_l1}


def make_loss(name: str, task_type: str, task: str = "graph") -> Loss:
    """The loss that ``model.loss_fun`` names, for the labels that ``dataset.task_type`` has and for what
    they are predicted for: with an edge's logit come its rank and share, which no loss reads.

    ``cross_entropy`` is the softmax one for exclusive classes and the sigmoid one, label by label,
    for binary and multilabel tasks, as in GraphGym; ``weighted_cross_entropy`` is for exclusive or two
    classes. Any other name is looked up among the losses
    registered with GraphGym's ``register_loss``.
    """
    if task == "edge":
        of_logits = make_loss(name, task_type)
        return lambda pred, true: of_logits(pred[:, :1], true)
    if task_type == "regression" and name in _REGRESSION:
        return _REGRESSION[name]
    if task_type == "subtoken_prediction" and name == "cross_entropy":
        return subtoken_cross_entropy
    if task_type != "regression" and name == "cross_entropy":
        return cross_entropy if task_type == "classification" else binary_cross_entropy
    if task_type in ("classification", "classification_binary") and name == "weighted_cross_entropy":
        return weighted_cross_entropy
    return _registered_loss(name, task_type)


def _registered_loss(name: str, task_type: str) -> Loss:
    from torch_geometric.graphgym.register import loss_dict

    if name not in loss_dict:
        ours = ", ".join(REGRESSION_LOSSES if task_type == "regression" else CLASSIFICATION_LOSSES)
        raise ConfigError(
            f"model.loss_fun: {name!r} is no loss for dataset.task_type {task_type!r}; "
            f"choose {ours}, or register one with GraphGym's register_loss"
        )
    registered = loss_dict[name]

    def loss(pred: Tensor, true: Tensor) -> Tensor:
        outcome = registered(pred, true)
        if outcome is None:
            raise ConfigError(f"model.loss_fun: the registered loss {name!r} does not apply to this task")
        value = outcome if isinstance(outcome, Tensor) else outcome[0]  # GraphGym's give (loss, predictions)
        if value.numel() != 1:
            raise ConfigError(
                f"model.loss_fun: the registered loss {name!r} gives {list(value.shape)} numbers; "
                "it has to give one, such as their mean"
            )
        return value.reshape(())

    return loss
