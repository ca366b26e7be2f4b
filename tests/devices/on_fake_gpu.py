"""Everything that a GPU would compute, on a pretend one: same values, one device at a time, few waits.

``test_devices.py`` runs this file in a process of its own, because a device stays registered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_check
import pytest
import torch
from helpers.fake_gpu import FakeGPU, MixedDevicesError, real, same_on_both
from helpers.graphs import batch_of, molecule_like
from test_configs import molecule_like as molecule_of
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import PNAConv

from graphgps_pearl import config, data, networks
from graphgps_pearl.pearl import BPEARL, RPEARL
from graphgps_pearl.registry import register
from graphgps_pearl.testing import assert_equivariant
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.metrics import EpochMetrics

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
NAMES = (
    *(
        "zinc-none",
        "zinc-rwse",
        "zinc-lappe-8s",
        "zinc-signnet-8s",
        "zinc-spe-8s",
        "zinc-rpearl",
        "zinc-bpearl",
    ),
    *(
        "zinc-bpearl-paper",
        "zinc-bpearl-plus",
        "zinc-rpearl-paper",
        "zinc-bpearl-gatedgcn",
        "zinc-bpearl-pna",
    ),
    *("peptides-bpearl", "peptides-func-rpearl", "drugood-bpearl", "csl-bpearl", "reddit-b-randomid"),
)
Run = Callable[[nn.Module, Any], Tensor]
Case = tuple[nn.Module, Run, Any]
OPTIONS = (
    {},
    {"norm": "layer"},
    {"norm": "graph", "num_taps": 3},
    {"norm": "none", "num_taps": 2},
    {"pool": "mean+std+max"},
    {"num_taps": 4, "gso": "random_walk", "skip": "sum"},
)


def network_of(name: str, layers: int, graphs: int = 3) -> tuple[nn.Module, Batch]:
    register()
    torch.manual_seed(0)
    cfg = config.load(
        CONFIGS / f"{name}.yaml", ["gt.layers", layers, "gt.dropout", 0.0, "gt.attn_dropout", 0.0]
    )
    spec = data.spec(cfg)
    assert spec is not None
    network = networks.build(cfg, spec.dim_in, spec.dim_out)
    for module in network.modules():
        if isinstance(module, nn.Dropout):  # it draws differently on a CPU
            module.p = 0.0
    made = [molecule_of(cfg, spec, seed) for seed in range(graphs)]
    if networks.needs_degrees(network):
        networks.set_degrees(network, PNAConv.get_degree_histogram(made))
    return network.double(), Batch.from_data_list(made).apply(
        lambda t: t.double() if t.is_floating_point() else t
    )


def test_two_devices_in_one_operation_raise() -> None:
    with FakeGPU() as gpu:
        x = gpu.copy(torch.ones(3))
        assert x.device.type == "fakegpu" and (x + torch.tensor(1.0)).device == x.device
        with pytest.raises(MixedDevicesError, match="CPU"):
            x + torch.ones(3)
        with pytest.raises(MixedDevicesError, match="CPU"):
            torch.ones(3).index_add_(0, gpu.copy(torch.arange(3)), torch.ones(3))
    assert torch.equal(real(x), torch.ones(3))


def test_the_public_check_of_equivariance() -> None:
    path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
    with FakeGPU() as gpu:
        encoding = gpu.copy(BPEARL(4, hidden_dim=4, num_layers=1).eval())
        for graphs in (path, Batch.from_data_list([path, path])):
            assert_equivariant(encoding, gpu.copy(graphs))


def test_launches_and_waits_are_counted() -> None:
    with FakeGPU() as gpu:
        x = gpu.copy(torch.arange(6.0))
        y = (x * 2).view(2, 3)  # one kernel; a view starts none
        assert gpu.launches.total() == 1 and gpu.waits.total() == 0
        float(y.sum())
        assert gpu.launches.total() == 2 and gpu.waits.total() == 1
        x[x > 2]
        x.cpu()
        assert gpu.waits.total() == 3
        x.to("cpu", non_blocking=True)
        assert gpu.waits.total() == 3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", ["quotient", "pairs", "samples"])
def test_encodings(kind: str, options: dict) -> None:
    torch.manual_seed(1)
    sizes = {"dim_pe": 4, "hidden_dim": 6, "num_layers": 2}
    taps = "num_taps" in options
    if kind == "samples":
        module: nn.Module = RPEARL(**sizes, **options, num_samples=5, tap_moments=taps)
    else:
        module = BPEARL(**sizes, **options, quotient=kind == "quotient", tap_diagonal=taps)
    data = batch_of(*[(molecule_like(n), n) for n in (9, 14, 30)])
    same_on_both(module.double(), lambda module, batch: module(batch.edge_index, batch.batch), data)


@pytest.mark.parametrize("prepared", [False, True], ids=["bare", "prepared"])
@pytest.mark.parametrize("name", NAMES)
def test_networks(name: str, prepared: bool) -> None:
    network, batch = network_of(name, layers=2)
    if prepared:
        networks.preparation(network, "cuda")(batch)
    same_on_both(network, lambda network, batch: network(batch)[0], batch, tolerance=1e-7)


@pytest.mark.parametrize(
    ("loss", "task_type"),
    [
        ("l1", "regression"),
        ("mse", "regression"),
        ("cross_entropy", "classification_binary"),
        ("cross_entropy", "classification_multilabel"),
        ("cross_entropy", "classification"),
        ("weighted_cross_entropy", "classification"),
        ("weighted_cross_entropy", "classification_binary"),
    ],
)
def test_losses_and_metrics(loss: str, task_type: str) -> None:
    torch.manual_seed(0)
    pred = torch.randn(8, 3 if task_type == "classification" else 2)
    true = torch.randint(3, (8,)) if task_type == "classification" else torch.randint(2, (8, 2)).float()
    values = []
    for on_gpu in (False, True):
        gpu = FakeGPU()
        with gpu:
            metrics = EpochMetrics(task_type)
            given: tuple[Tensor, Tensor] = (pred, true)
            if on_gpu:
                metrics, given = gpu.copy(metrics), (gpu.copy(pred), gpu.copy(true))
            error = make_loss(loss, task_type)(*given)
            metrics.update(*given, error)
            assert gpu.waits.total() == 0
            values.append((float(error), metrics.compute()))
    assert values[1] == values[0]


def lost_transfer_cases() -> dict[str, Case]:
    """Small cases that together reach all lines that make tensors on the device."""
    data = batch_of(*[(molecule_like(n), n) for n in (5, 9)])
    encode: Run = lambda module, batch: module(batch.edge_index, batch.batch)  # noqa: E731
    one_graph: Run = lambda module, batch: module(batch.edge_index)  # noqa: E731
    dense: Run = lambda module, batch: module(batch.edge_index, batch.batch)[1].to_dense()  # noqa: E731
    predict: Run = lambda network, batch: network(batch)[0]  # noqa: E731
    sizes = {"dim_pe": 3, "hidden_dim": 4, "num_layers": 1}
    cases: dict[str, Case] = {
        "samples": (RPEARL(**sizes, num_samples=3, num_taps=3, tap_moments=True), encode, data),
        "sobol": (RPEARL(**sizes, num_samples=3, distribution="sobol"), encode, data),
        "one graph": (RPEARL(**sizes, num_samples=3, gso="laplacian", num_taps=2), one_graph, data),
        "sum of pairs": (BPEARL(**sizes, num_taps=3, quotient=False), encode, data),
        "pairs": (BPEARL(**sizes, num_taps=3, return_pairs=True, quotient=False), dense, data),
        "graph norm": (BPEARL(**sizes, num_taps=2, norm="graph", quotient=True), encode, data),
        "merged": (BPEARL(**sizes, num_taps=3, pool="std+max+self", quotient=True), encode, data),
        "merged pairs": (BPEARL(3, 4, 9, return_pairs=True, quotient=True), dense, data),
    }
    for name in (
        *("zinc-bpearl", "zinc-lappe-8s", "zinc-signnet-8s", "zinc-spe-8s", "zinc-bpearl-gatedgcn"),
        *("zinc-bpearl-plus", "zinc-bpearl-pna"),
    ):
        network, batch = network_of(name, layers=1)
        cases[name] = network, predict, batch
    network, batch = network_of("zinc-bpearl", layers=1)
    networks.preparation(network, "cuda")(batch)
    cases["prepared"] = network, predict, batch
    return cases


def run_on(gpu: FakeGPU, case: Case) -> None:
    module, run, batch = case
    with gpu:
        torch.manual_seed(0)
        run(gpu.copy(module), gpu.copy(batch)).square().sum().backward()


def test_a_lost_transfer_is_seen() -> None:
    """Without ``device=`` or ``.to(device)`` at any one line it raises, or the host waits more often."""
    case_of: dict[str, tuple[str, Counter[str]]] = {}
    cases = lost_transfer_cases()
    for name, case in cases.items():
        gpu = FakeGPU()
        run_on(gpu, case)
        for line in +gpu.transfers:
            case_of.setdefault(line, (name, gpu.waits))
    del case_of["elsewhere"]  # the test's own
    missed = []
    for line, (name, waits) in case_of.items():
        gpu = FakeGPU(lost=line)
        try:
            run_on(gpu, cases[name])
        except (MixedDevicesError, RuntimeError, AssertionError, AttributeError):
            continue
        if not +(gpu.waits - waits):
            missed.append((line, name))
    assert len(case_of) > 30
    assert not missed, f"{len(missed)} of {len(case_of)}: {missed}"


# Operations that start kernels, and waits, of a training step with 8 graphs.
CEILINGS = {
    "zinc-none": (695, 1),
    "zinc-rwse": (703, 1),
    "zinc-bpearl": (819, 1),
    "zinc-rpearl": (931, 1),
    "zinc-rpearl-paper": (1000, 1),
}


@pytest.mark.parametrize("name", CEILINGS)
def test_launches_and_waits_of_a_step_do_not_grow(name: str) -> None:
    row, launches, waits = gpu_check.pretend(f"{name}:8", None)
    assert row.launches is not None and row.launches <= CEILINGS[name][0], launches.most_common(20)
    assert row.waits is not None and row.waits <= CEILINGS[name][1], waits.most_common(20)
