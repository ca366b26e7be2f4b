"""What a loader prepares of the bare graphs: the same results with it and without it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from test_configs import molecule_like
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

from graphgps_pearl import config, data, networks
from graphgps_pearl.contracts import Prepared
from graphgps_pearl.data.loader import Collate
from graphgps_pearl.errors import DataError
from graphgps_pearl.registry import register

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
MERGED = ["posenc_BPEARL.quotient", "True"]
CASES = {
    "zinc-none": [],
    "zinc-bpearl": [],
    "zinc-rpearl": [],
    "peptides-bpearl": [],
    "zinc-bpearl-gatedgcn": ["gt.layer_type", "GINE+Performer"],
}


def network_of(name: str, options: list[str]) -> tuple[nn.Module, list[Data], object]:
    register()
    torch.manual_seed(0)
    cfg = config.load(
        CONFIGS / f"{name}.yaml", ["gt.layers", 2, "gt.dropout", 0.0, "gt.attn_dropout", 0.0, *options]
    )
    spec = data.spec(cfg)
    assert spec is not None
    network = networks.build(cfg, spec.dim_in, spec.dim_out).double()
    graphs = [molecule_like(cfg, spec, seed) for seed in range(4)]
    return network, [g.apply(lambda t: t.double() if t.is_floating_point() else t) for g in graphs], cfg


def results(network: nn.Module, batch: Batch) -> list[Tensor]:
    torch.manual_seed(1)
    network.zero_grad()
    out, _ = network(batch)
    out.square().sum().backward()
    return [out.detach(), *(p.grad.clone() for p in network.parameters() if p.grad is not None)]


@pytest.mark.parametrize("merged", [False, True], ids=["pairs", "merged"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_without(name: str, merged: bool) -> None:
    network, graphs, _ = network_of(name, CASES[name])
    encodings = [m for m in network.modules() if hasattr(m, "quotient")]
    if merged and not encodings:
        pytest.skip("nothing to merge")
    for encoding in encodings:
        encoding.quotient = merged
    prepare = networks.preparation(network, "cpu")
    expected = results(network, Batch.from_data_list(graphs))
    batch = Collate(prepare)(graphs)
    sent = pickle.loads(pickle.dumps(batch))  # as a worker process would
    for given in (batch, batch, sent, batch.pin_memory() if torch.cuda.is_available() else sent):
        found = results(network, given)
        for ours, theirs in zip(found, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_nothing_is_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    network, graphs, _ = network_of("zinc-bpearl", [])
    batch = Collate(networks.preparation(network, "cpu"))(graphs)
    sent = pickle.loads(pickle.dumps(batch))
    for name in ("layers.layout.group_graphs", "pearl.hooks.PairRows", "layers.pair_bias.pair_index"):
        monkeypatch.setattr(f"graphgps_pearl.{name}", None)
    network(batch)
    network(sent)


@pytest.mark.parametrize("layers", [(1, 4), (4, 1)], ids=str)
def test_a_batch_that_was_prepared_for_another_network(layers: tuple[int, int]) -> None:
    """Its merged pairs are others, and an index to them would point at wrong rows, or behind the last."""
    options = [["posenc_BPEARL.num_layers", number, "posenc_BPEARL.num_taps", 2] for number in layers]
    (other, graphs, _), (network, _, _) = (network_of("zinc-bpearl", words) for words in options)
    for encoder in (m for m in (*other.modules(), *network.modules()) if hasattr(m, "pair_bias")):
        encoder.encoding.quotient = True
        nn.init.normal_(encoder.pair_bias.weight)
    expected = results(network, Batch.from_data_list(graphs))
    batch = Collate(networks.preparation(other, "cpu"))(graphs)
    for given in (batch, pickle.loads(pickle.dumps(batch))):
        for ours, theirs in zip(results(network, given), expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_graphs_are_checked_where_they_are_prepared() -> None:
    network, graphs, _ = network_of("zinc-bpearl", [])
    graphs[1].edge_index = graphs[1].edge_index + 100
    with pytest.raises(DataError, match=r"posenc_BPEARL.*edge"):
        Collate(networks.preparation(network, "cpu"))(graphs)


def test_a_batch_does_not_keep_what_a_pass_computed() -> None:
    network, graphs, _ = network_of("zinc-bpearl", [])
    batch = Collate(networks.preparation(network, "cpu"))(graphs)
    network(batch)
    cached = Prepared.of(batch).get("layout")._cache
    assert set(cached) == {"grouping", "padding in torch.float64"}


def test_worker_processes_prepare_the_same() -> None:
    network, graphs, cfg = network_of("zinc-bpearl", [])
    prepare = networks.preparation(network, "cpu")
    found = []
    for workers in (0, 1):
        cfg.defrost()
        cfg.num_workers, cfg.train.batch_size = workers, 2
        loader = data.make_loader(graphs, cfg, shuffle=False, prepare=prepare)
        found.append([results(network, batch) for batch in loader])
    for here, there in zip(*found, strict=True):
        for a, b in zip(here, there, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
