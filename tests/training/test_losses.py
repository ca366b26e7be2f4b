import pytest
import torch
import torch.nn.functional as F

from graphgps_pearl.errors import ConfigError
from graphgps_pearl.training.losses import make_loss


@pytest.mark.parametrize(
    ("name", "task_type", "reference"),
    [
        ("l1", "regression", F.l1_loss),
        ("mse", "regression", F.mse_loss),
        ("smoothl1", "regression", F.smooth_l1_loss),
        ("cross_entropy", "classification_binary", F.binary_cross_entropy_with_logits),
        ("cross_entropy", "classification_multilabel", F.binary_cross_entropy_with_logits),
    ],
)
def test_equals_torch_on_the_labels_that_exist(name, task_type, reference):
    torch.manual_seed(0)
    pred = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    true = torch.randint(0, 2, (7, 3)).double()
    loss = make_loss(name, task_type)
    torch.testing.assert_close(loss(pred, true), reference(pred, true))

    missing = torch.rand(7, 3) < 0.4
    holed = true.masked_fill(missing, torch.nan)
    value = loss(pred, holed)
    torch.testing.assert_close(value, reference(pred[~missing], true[~missing]))
    (grad,) = torch.autograd.grad(value, pred)
    assert torch.isfinite(grad).all()
    assert (grad[missing] == 0).all()


def test_exclusive_classes():
    pred, true = torch.randn(5, 4), torch.tensor([0, 3, 1, 2, 0])
    loss = make_loss("cross_entropy", "classification")
    torch.testing.assert_close(loss(pred, true), F.cross_entropy(pred, true))


@pytest.mark.parametrize("name", ["cross_entropy", "weighted_cross_entropy"])
def test_classes_that_are_not_known_do_not_count(name):
    torch.manual_seed(0)
    pred, true = torch.randn(300, 4, requires_grad=True), torch.randint(3, (300,))
    weight = None
    if name == "weighted_cross_entropy":
        counts = torch.bincount(true, minlength=4)
        weight = (1 - counts / 300) * (counts > 0)
    loss = make_loss(name, "classification")
    expected = F.cross_entropy(pred, true, weight)
    missing = torch.full((40,), -1)
    torch.testing.assert_close(loss(torch.cat((pred, 9 * pred[:40])), torch.cat((true, missing))), expected)

    nothing = loss(pred[:40], missing)
    nothing.backward()
    assert nothing.item() == 0 and (pred.grad == 0).all()
    same = torch.ones(5, dtype=torch.long)
    torch.testing.assert_close(loss(pred[:5], same), F.cross_entropy(pred[:5], same))


def test_no_label_at_all_is_zero_and_finite():
    pred = torch.randn(3, 2, requires_grad=True)
    loss = make_loss("l1", "regression")(pred, torch.full((3, 2), torch.nan))
    loss.backward()
    assert loss.item() == 0
    assert (pred.grad == 0).all()


def test_a_registered_loss_is_found():
    from torch_geometric.graphgym import register

    register.loss_dict["test_quartic"] = lambda pred, true: ((pred - true).pow(4).mean(), pred)
    try:
        assert make_loss("test_quartic", "regression")(torch.tensor([2.0]), torch.tensor([0.0])) == 16
    finally:
        del register.loss_dict["test_quartic"]


def test_a_registered_loss_gives_one_number(monkeypatch):
    """With the predictions, as GraphGym has it, or alone; one for each graph is not the first graph's."""
    from torch_geometric.graphgym import register

    pred, true = torch.tensor([[2.0], [4.0]]), torch.zeros(2, 1)
    monkeypatch.setitem(register.loss_dict, "test_loss", lambda pred, true: (pred - true).abs().mean())
    assert make_loss("test_loss", "regression")(pred, true) == 3
    monkeypatch.setitem(register.loss_dict, "test_loss", lambda pred, true: (pred - true).abs().mean(0))
    assert make_loss("test_loss", "regression")(pred, true).shape == ()
    for each in (lambda pred, true: (pred - true).abs(), lambda pred, true: ((pred - true).abs(), pred)):
        monkeypatch.setitem(register.loss_dict, "test_loss", each)
        with pytest.raises(ConfigError, match=r"'test_loss' gives \[2, 1\] numbers"):
            make_loss("test_loss", "regression")(pred, true)


def test_unknown_names_say_what_there_is():
    with pytest.raises(ConfigError, match=r"model.loss_fun: 'l3'.*choose l1, mse, smoothl1"):
        make_loss("l3", "regression")
    with pytest.raises(ConfigError, match=r"'l1' is no loss.*choose cross_entropy"):
        make_loss("l1", "classification_binary")


def test_the_loss_of_a_name_is_the_mean_over_its_words() -> None:
    torch.manual_seed(0)
    pred, true = torch.randn(3, 5 * 5002), torch.randint(0, 5002, (3, 5))
    parts = [
        torch.nn.functional.cross_entropy(pred[:, 5002 * i : 5002 * (i + 1)], true[:, i]) for i in range(5)
    ]
    loss = make_loss("cross_entropy", "subtoken_prediction")
    assert torch.isclose(loss(pred, torch.cat((true, torch.full((3, 2), -7)), dim=1)), sum(parts) / 5)
