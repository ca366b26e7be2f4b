"""What else is in the batch, and in which pieces the samples are computed, changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from helpers.graphs import batch_of, molecule_like, random_graph
from torch import Tensor

from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.vocabulary import DISTRIBUTIONS

SMALL = [(random_graph(6), 6), (molecule_like(9), 9), (torch.empty(2, 0, dtype=torch.long), 1)]
LARGE = (molecule_like(40), 40)


def trained(module: BPEARL | RPEARL) -> BPEARL | RPEARL:
    """The module with running statistics of some batch, in evaluation."""
    data = batch_of(*SMALL, LARGE)
    module.double().train()(data.edge_index, data.batch)
    return module.eval()


@pytest.mark.parametrize("norm", ["batch", "layer", "graph"])
@pytest.mark.parametrize("kind", [BPEARL, RPEARL])
def test_a_graph_is_encoded_alike_alone_and_in_any_batch(kind: type, norm: str) -> None:
    module = trained(
        kind(dim_pe=3, hidden_dim=5, num_layers=2, num_taps=2, norm=norm, pool="mean+std", scale=True)
    )
    alone = [module(edges, num_nodes=n) for edges, n in SMALL]
    orders = [SMALL, [LARGE, *SMALL], [*SMALL, LARGE], [LARGE, *SMALL, LARGE]]
    for graphs in orders:
        data = batch_of(*graphs)
        together = module(data.edge_index, data.batch).split([n for _, n in graphs])
        offset = 1 if graphs[0] is LARGE else 0
        for expected, actual in zip(alone, together[offset:], strict=False):
            torch.testing.assert_close(actual, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [BPEARL, RPEARL])
def test_empty_entries_change_nothing(kind: type) -> None:
    module = trained(kind(dim_pe=3, hidden_dim=5, num_layers=2))
    data = batch_of(*SMALL)
    spread = data.batch * 3 + 2  # empty graphs before and between
    torch.testing.assert_close(module(data.edge_index, spread), module(data.edge_index, data.batch))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("pool", ["mean", "sum+max", "var", "mean+std"])
def test_chunks_in_evaluation(pool: str, distribution: str) -> None:
    module = trained(
        RPEARL(dim_pe=3, num_samples=11, hidden_dim=5, num_layers=2, pool=pool, distribution=distribution)
    )
    data = batch_of(*SMALL)
    expected = module(data.edge_index, data.batch)
    for module.chunk_size in (1, 4, 10, 11, 100):
        torch.testing.assert_close(module(data.edge_index, data.batch), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_chunks_in_training_draw_the_same_samples(distribution: str) -> None:
    module = RPEARL(
        dim_pe=3, num_samples=11, hidden_dim=5, num_layers=2, norm="layer", distribution=distribution
    ).double()
    data = batch_of(*SMALL)
    results = []
    for module.chunk_size in (None, 3):
        torch.manual_seed(5)
        module.zero_grad()
        output = module(data.edge_index, data.batch)
        output.square().sum().backward()
        results.append([output.detach(), *[p.grad for p in module.parameters()]])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("norm", ["batch", "graph"])
def test_chunks_with_batch_norm_in_training_are_refused(norm: str) -> None:
    module = RPEARL(dim_pe=3, num_samples=8, chunk_size=4, norm=norm)
    with pytest.raises(ValueError, match="chunk_size=4 with batch norm in training"):
        module(SMALL[0][0])
    module.chunk_size = 8  # one chunk is no chunk
    module(SMALL[0][0])
    module.chunk_size = 4
    module.eval()(SMALL[0][0])


def peak_memory(run: Callable[[], object], folder: Path) -> int:
    """The most bytes that torch had allocated at once during the call."""
    with torch.profiler.profile(profile_memory=True) as profile:
        run()
    profile.export_chrome_trace(str(folder / "trace.json"))
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    levels = [
        e["args"]["Total Allocated"]
        for e in sorted(events, key=lambda e: e.get("ts", 0))
        if e.get("name") == "[memory]"
    ]
    return max(levels) - levels[0]


@pytest.mark.parametrize("training", [True, False], ids=["forward and backward", "evaluation"])
def test_memory_grows_with_the_chunk_and_not_with_the_samples(training: bool, tmp_path: Path) -> None:
    edges = molecule_like(150)

    def peak(num_samples: int, chunk_size: int | None) -> int:
        torch.manual_seed(0)
        module = RPEARL(4, num_samples, hidden_dim=16, num_layers=3, norm="layer", chunk_size=chunk_size)
        module.train(training)

        def run() -> Tensor:
            with torch.set_grad_enabled(training):
                output = module(edges).sum()
            if training:
                output.backward()
            return output

        run()
        return peak_memory(run, tmp_path)

    assert peak(160, 10) < 1.1 * peak(20, 10)
    assert peak(160, 40) < 0.5 * peak(160, None)
    assert peak(160, 40) > 2 * peak(160, 10)
