import math

import pytest
import torch
from scipy.stats import spearmanr
from sklearn import metrics as sk

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.training.metrics import EpochMetrics, best_metric, compute_metrics, metric_names


@pytest.fixture
def regression() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    true = torch.randn(50, 3)
    return true + 0.5 * torch.randn(50, 3), true


def test_regression_against_scikit_learn_and_scipy(regression):
    pred, true = regression
    found = compute_metrics(pred, true, "regression")
    assert found["mae"] == pytest.approx(sk.mean_absolute_error(true, pred), rel=1e-5)
    assert found["rmse"] == pytest.approx(math.sqrt(((pred - true) ** 2).mean()), rel=1e-5)
    assert found["r2"] == pytest.approx(sk.r2_score(true, pred), rel=1e-5)
    rho = [spearmanr(true[:, i], pred[:, i]).statistic for i in range(3)]
    assert found["spearmanr"] == pytest.approx(sum(rho) / 3, rel=1e-5)


@pytest.mark.parametrize("mean", [0, 1000, 10000])
def test_r2_of_targets_far_from_zero(mean) -> None:
    """Sums of squares in float32 gave R^2 above 1 here."""
    torch.manual_seed(0)
    true = mean + torch.randn(200, 1)
    pred = true + 0.5 * torch.randn(200, 1)
    expected = sk.r2_score(true.double(), pred.double())
    assert compute_metrics(pred, true, "regression")["r2"] == pytest.approx(expected, rel=1e-5)


def test_targets_from_a_worker_are_not_kept_in_shared_memory() -> None:
    """Each would keep a file open until the next epoch, and a process may have 1,024."""
    metrics = EpochMetrics("regression")
    metrics.update(torch.ones(3, 1), torch.zeros(3, 1).share_memory_(), torch.tensor(1.0))
    assert not metrics.trues[0].is_shared() and metrics.compute()["mae"] == 1


def test_missing_labels_are_left_out(regression):
    pred, true = regression
    holed = true.clone()
    holed[::3, 1] = torch.nan
    found = compute_metrics(pred, holed, "regression")
    valid = ~holed.isnan()
    assert found["mae"] == pytest.approx((pred - true)[valid].abs().mean().item(), rel=1e-5)
    assert all(math.isfinite(v) for v in found.values())


def test_binary_and_multilabel_against_scikit_learn():
    torch.manual_seed(1)
    true = (torch.rand(80, 4) < 0.3).float()
    pred = torch.randn(80, 4) + true
    found = compute_metrics(pred, true, "classification_multilabel")
    prob = pred.sigmoid()
    assert found["auc"] == pytest.approx(sk.roc_auc_score(true, prob, average="macro"), rel=1e-5)
    assert found["ap"] == pytest.approx(sk.average_precision_score(true, prob, average="macro"), rel=1e-5)
    assert found["f1"] == pytest.approx(sk.f1_score(true, prob > 0.5, average="macro"), rel=1e-5)
    assert found["accuracy"] == pytest.approx(((prob > 0.5) == (true > 0.5)).float().mean().item())
    assert compute_metrics(pred[:, :1], true[:, :1], "classification_binary")["auc"] == pytest.approx(
        sk.roc_auc_score(true[:, 0], prob[:, 0]), rel=1e-5
    )


def test_a_label_with_one_class_only_is_left_out_as_ogb_does():
    pred = torch.randn(20, 2)
    true = torch.zeros(20, 2)
    true[:7, 0] = 1
    both = compute_metrics(pred, true, "classification_multilabel")
    first = compute_metrics(pred[:, :1], true[:, :1], "classification_binary")
    assert both["auc"] == first["auc"]
    assert math.isnan(compute_metrics(pred[:, 1:], true[:, 1:], "classification_binary")["auc"])


def test_exclusive_classes_against_scikit_learn():
    torch.manual_seed(2)
    pred, true = torch.randn(60, 5), torch.arange(60) % 5
    found = compute_metrics(pred, true, "classification")
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(true, pred.argmax(-1)))
    assert found["f1"] == pytest.approx(sk.f1_score(true, pred.argmax(-1), average="macro"), rel=1e-5)


def test_selection_metric():
    assert best_metric("auto", "argmax", "regression") == ("mae", False)
    assert best_metric("auto", "argmin", "classification_binary") == ("auc", True)
    assert best_metric("mae", "argmin", "regression") == ("mae", False)
    with pytest.raises(ConfigError, match=r"metric_best: 'ap'.*choose auto, loss, mae"):
        best_metric("ap", "argmax", "regression")


def test_names_are_scored_as_ogb_does() -> None:
    from graphgps_pearl.ogb_features import ogb_features

    ogb_features()
    from ogb.graphproppred import Evaluator

    torch.manual_seed(0)
    pred = torch.randint(0, 6, (50, 5))
    pred[torch.rand(50, 5) < 0.2] = 5001
    pred[torch.rand(50, 5) < 0.1] = 5000
    names = [torch.randint(0, 8, (int(n),)).tolist() for n in torch.randint(1, 9, (50,))]
    words = torch.full((50, 8), -1)
    for row, name in enumerate(names):
        different = list(dict.fromkeys(name))
        words[row, : len(different)] = torch.tensor(different)
    said = [row[: row.index(5001)] if 5001 in row else row for row in pred.tolist()]
    theirs = Evaluator("ogbg-code2").eval({"seq_ref": names, "seq_pred": said})
    true = torch.cat((torch.zeros(50, 5, dtype=torch.long), -2 - words), dim=1)
    logits = torch.nn.functional.one_hot(pred, 5002).flatten(1).float()
    ours = EpochMetrics("subtoken_prediction")
    for part in (slice(0, 20), slice(20, 50)):
        ours.update(logits[part], true[part], torch.tensor(1.0))
    values = ours.compute()
    assert values["f1"] == pytest.approx(theirs["F1"])
    assert values["precision"] == pytest.approx(theirs["precision"])
    assert values["recall"] == pytest.approx(theirs["recall"])
    assert ours.count == 250 and ours.per_target() == []


def test_confident_predictions_are_not_tied() -> None:
    """Above 17 the sigmoid is 1 in float32, and AUC and AP would see equal scores."""
    torch.manual_seed(3)
    pred = 25 + 8 * torch.randn(500, 1)
    true = (torch.rand(500, 1) < ((pred - 25) / 8).sigmoid()).float()
    found = compute_metrics(pred, true, "classification_binary")
    assert found["auc"] == pytest.approx(sk.roc_auc_score(true, pred), rel=1e-5)
    assert found["ap"] == pytest.approx(sk.average_precision_score(true, pred), rel=1e-5)


@pytest.mark.parametrize(
    ("task", "task_type", "width", "true"),
    [
        ("graph", "regression", 1, torch.randn(4, 1)),
        ("graph", "classification_binary", 1, torch.tensor([[0.0], [0.0], [0.0], [1.0]])),
        ("graph", "classification", 3, torch.tensor([0, 0, 0, 1])),
        ("node", "classification", 3, torch.tensor([0, 0, 0, 1])),
        ("edge", "classification_binary", 3, torch.tensor([[0.0], [0.0], [0.0], [1.0]])),
        ("graph", "subtoken_prediction", 5 * 5002, torch.tensor([[0, 0, 0, 0, 0, -2]] * 4)),
    ],
)
def test_no_metric_of_predictions_that_are_no_numbers(task, task_type, width, true) -> None:
    """Else such an epoch could be the best: three of these four labels are 0, as is NaN > 0.5."""
    metrics = EpochMetrics(task_type, task=task)
    pred = torch.zeros(4, width)
    pred[1, 0] = torch.nan
    metrics.update(pred, true, torch.tensor(math.nan))
    assert metrics.compute().keys() == {"loss", *metric_names(task_type, task)}
    assert all(map(math.isnan, metrics.compute().values()))
