"""The model card says what is true of the model."""

from graphgps_pearl.inference import folder as folders
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.facts import ModelFacts
from graphgps_pearl.inference.loading import load
from graphgps_pearl.inference.shipped import SHIPPED


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
