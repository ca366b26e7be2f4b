"""Which weights a run's model has, and what is said of them."""

import shutil
from pathlib import Path

import pytest
import torch

from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.loading import load


@pytest.fixture
def run(trained, tmp_path) -> Path:
    shutil.copytree(trained("Atom"), tmp_path / "atom" / "0")
    return tmp_path / "atom" / "0"


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_the_card_says_which_weights_these_are(run):
    best = load(run, "cpu")
    assert "chosen by validation" in write_card(best.cfg, best.facts)
    last = load(run / "last.ckpt", "cpu")
    card = write_card(last.cfg, last.facts)
    assert "epoch 2, the last that were saved, not chosen" in card and "by validation" not in card


def test_damaged_or_missing_weights_are_never_replaced_in_silence(run, caplog):
    shutil.copy(run / "best.ckpt", run / "previous-best.ckpt")
    expected = load(run, "cpu")
    assert not caplog.records
    for spoil in (damage, Path.unlink):
        spoil(run / "best.ckpt")
        found = load(run, "cpu")
        assert len(caplog.records) == 1 and "best.ckpt" in caplog.text and "previous-best.ckpt" in caplog.text
        assert "best but one" in write_card(found.cfg, found.facts)
        for mine, other in zip(found.network.parameters(), expected.network.parameters(), strict=True):
            assert torch.equal(mine, other)
        caplog.clear()
    damage(run / "previous-best.ckpt")
    with pytest.raises(DataError, match=r"best\.ckpt.*last\.ckpt"):
        load(run, "cpu")


def test_damaged_facts_are_one_line(run):
    damage(run / "data.json")
    with pytest.raises(DataError, match=r"data\.json.*damaged"):
        load(run, "cpu")
