"""Which weights a run's model has, and what is said of them."""

import shutil
from pathlib import Path

import pytest
import torch
from helpers.inference import damage

from graphgps_pearl.errors import DataError
from graphgps_pearl.inference.card import write_card
from graphgps_pearl.inference.loading import load


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
