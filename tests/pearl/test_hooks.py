"""Kernels are optional: everything runs without them and gives the same."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import torch
from helpers.graphs import batch_of, molecule_like

from graphgps_pearl.pearl import BPEARL, hooks
from graphgps_pearl.pearl.rows import PairRows
from graphgps_pearl.switches import kernels_enabled, use_kernels

REPOSITORY = Path(__file__).resolve().parents[2]


def test_kernels_off_are_plain_rows_and_plain_layers(monkeypatch) -> None:
    data = batch_of((molecule_like(60), 60))
    module = BPEARL(4, num_layers=2).double()
    seen = []
    monkeypatch.setattr(hooks, "PairRows", lambda operators: seen.append(1) or PairRows(operators))
    results = {}
    for enabled in (True, False):
        with use_kernels(enabled):
            assert kernels_enabled() is enabled
            results[enabled] = module(data)
        assert len(seen) == (not enabled)
    torch.testing.assert_close(results[True], results[False], rtol=1e-9, atol=1e-9)


def test_the_folder_can_be_deleted(tmp_path: Path) -> None:
    """In a copy of the package without pearl/kernels both encodings train."""
    shutil.copytree(REPOSITORY / "graphgps_pearl", tmp_path / "graphgps_pearl")
    shutil.rmtree(tmp_path / "graphgps_pearl" / "pearl" / "kernels")
    code = """
import torch
from graphgps_pearl.pearl import BPEARL, RPEARL
edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
for pe in (BPEARL(4, num_taps=3, pool="sum+self", tap_diagonal=True), RPEARL(4, num_samples=3)):
    pe(edges).sum().backward()
    assert all(p.grad is not None for p in pe.parameters())
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
