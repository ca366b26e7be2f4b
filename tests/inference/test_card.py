"""The model card says what is true of the model."""

import pytest

from graphgps_pearl.inference import folder as folders
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.loading import load
from graphgps_pearl.runs.model_folder import SHIPPED


def test_the_card_says_which_weights_these_are(run):
    best = load(run, "cpu")
    assert "chosen by validation" in write_card(best.cfg, best.facts)
    last = load(run / "last.ckpt", "cpu")
    card = write_card(last.cfg, last.facts)
    assert "epoch 2, the last that were saved, not chosen" in card and "by validation" not in card


def test_names_from_elsewhere_are_text_in_the_card():
    loaded = folders.read_model(SHIPPED / "wehi-logp")
    name = "a|b<script>`\n# c"
    facts = ModelFacts(name, name, "regression", 9, 3, 1, (name,), ("",), metrics={f"{name}_loss": 1.0})
    card = write_card(loaded.cfg, facts)
    assert "<script>" not in card.replace("`a'", "").replace("\\|b<script>'", "")
    assert "\n# c" not in card


@pytest.mark.parametrize("average", [0.0, 0.99])
def test_the_card_says_how_the_batch_norms_were_estimated(average):
    loaded = folders.read_model(SHIPPED / "wehi-logp")
    cfg = loaded.cfg.clone()
    cfg.train["ema_decay"], cfg.train["bn_reestimate"] = average, 320
    card = write_card(cfg, loaded.facts)
    assert "re-estimated from 320 training graphs" in card
    assert ("`train.ema_decay 0.99`" in card) == bool(average)
    cfg.train["bn_reestimate"] = 0
    assert "re-estimated" not in write_card(cfg, loaded.facts)


def test_the_card_claims_no_more_of_the_targets_than_is_known():
    """LRGB's public table comes standardised; classes have nothing to standardise."""
    regression, labels = (load(name) for name in ("zinc-bpearl", "peptides-func-bpearl"))
    assert "targets are taken as the data has them" in write_card(regression.cfg, regression.facts)
    assert "targets" not in write_card(labels.cfg, labels.facts).partition("## Model")[0]
