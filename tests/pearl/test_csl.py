"""The paper's table on circular skip links, and what is true of random weights there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch
from helpers.graphs import CSL_SKIPS, batch_of, circular_skip_link
from torch import Tensor

from graphgps_pearl.pearl import BPEARL, RPEARL, Phi, TapLayer

NODES = 41
DATA = batch_of(*[(circular_skip_link(skip), NODES) for skip in CSL_SKIPS])
H = torch.tensor([0, 1, -1 / 2, 1 / 3, -1 / 4], dtype=torch.float64)
PAPER = [0, 27351.6, 8800.2, 25779.9, 20458.4, 17197.2, 15861.3, 24055.6, 4106.8, 17667.0]


def two_layers(width: int, weights: list[Tensor], skip: str = "sum") -> Phi:
    """Two generalised layers, K = 5, with the given H_k."""
    layers = [TapLayer(1, width, 5), TapLayer(width, width, 5)]
    for layer, weight in zip(layers, weights, strict=True):
        layer.weight = torch.nn.Parameter(weight)
    return Phi(layers, skip=skip)


def paper_phi(skip: str = "sum") -> Phi:
    return two_layers(1, [H.view(5, 1, 1)] * 2, skip)


def random_phi(width: int, generator: torch.Generator) -> Phi:
    shapes = (5, 1, width), (5, width, width)
    return two_layers(width, [torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes])


@torch.no_grad()
def graph_values(module: BPEARL | RPEARL) -> Tensor:
    """The encoding summed over the nodes of each graph, [10, F]."""
    return module(DATA.edge_index, DATA.batch).view(len(CSL_SKIPS), NODES, -1).sum(1)


def separated(values: Tensor) -> bool:
    values = values / values.abs().max().clamp(min=1e-30)
    distance = torch.cdist(values, values, p=float("inf")).fill_diagonal_(1)
    return bool(distance.min() > 1e-9)


def test_table_to_the_printed_digit() -> None:
    values = graph_values(BPEARL.from_phi(paper_phi(), gso="adjacency"))
    assert [round(v, 1) for v in values.flatten().tolist()] == PAPER


@pytest.mark.parametrize("skip", ["none", "residual"])
def test_only_sums_of_layers_give_the_table(skip: str) -> None:
    values = graph_values(BPEARL.from_phi(paper_phi(skip), gso="adjacency"))
    assert sum(round(v, 1) == p for v, p in zip(values.flatten().tolist(), PAPER, strict=True)) <= 1


def test_random_samples_separate_the_classes_at_2000() -> None:
    module = RPEARL.from_phi(paper_phi(), gso="adjacency", num_samples=2000).eval()
    values = []
    for module.eval_seed in range(5):
        values.append(graph_values(module).flatten())
    values = torch.stack(values)  # [seeds, classes]
    order = values[0].argsort()
    assert bool((values[:, order].diff(dim=1) > 0).all()), "another seed, another order"


def test_random_weights_of_width_8_separate_the_classes() -> None:
    generator = torch.Generator().manual_seed(0)
    draws = [graph_values(BPEARL.from_phi(random_phi(8, generator), gso="adjacency")) for _ in range(20)]
    assert sum(map(separated, draws)) == 20


def test_a_few_random_weights_of_width_8_tie_some_classes() -> None:
    """Five draws in 300 do (seeds 0 to 14, 20 draws each): not "any random weights", but almost any."""
    generator = torch.Generator().manual_seed(1)
    phi = [random_phi(8, generator) for _ in range(12)][-1]
    values = graph_values(BPEARL.from_phi(phi, gso="adjacency"))
    tied = [CSL_SKIPS.index(skip) for skip in (5, 9, 12)]
    torch.testing.assert_close(values[tied], values[tied[:1]].expand(3, -1), rtol=1e-12, atol=0)
    assert separated(values[[i for i in range(len(CSL_SKIPS)) if i not in tied[1:]]])


def test_random_weights_of_width_1_mostly_do_not() -> None:
    """Three draws in four tie or die: the activation never bites, or nothing is left after it."""
    generator = torch.Generator().manual_seed(0)
    draws = [graph_values(BPEARL.from_phi(random_phi(1, generator), gso="adjacency")) for _ in range(100)]
    count = sum(map(separated, draws))
    assert 10 <= count <= 35
    assert any(bool((values == 0).all()) for values in draws)


def test_the_script_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).resolve().parents[2] / "scripts" / "reproduce_csl.py"
    runpy.run_path(str(path))["main"](["--draws", "2"])
    printed = capsys.readouterr().out
    assert "equals the paper in 10 of 10 classes" in printed
    assert "in the same order for 5 of 5 tables" in printed
    assert "2 of 2 draws separate" in printed
