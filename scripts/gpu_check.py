"""What a training step does on a GPU: equal to the CPU or not, kernels launched, waits, time, memory.

    python scripts/gpu_check.py [--config NAME[:BATCH] ...] [--data DIR] [--pretend] [--lines N]

Run it where there is a GPU and paste the table into an issue. ``--pretend`` counts launches and
waits without one, on the pretend device of the tests; ``--lines`` names the lines that cause them.
Real molecules are taken from ``--data`` (as ``dataset.dir``) if they are there, synthetic ones otherwise.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # the pretend device
sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from suites.graphs import CONFIGS, load_graphs
from torch import Tensor
from torch_geometric.data import Batch

from graphgps_pearl import config, encoders, networks
from graphgps_pearl.registry import register
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.run import optim_settings
from graphgps_pearl.training.task import GraphTask

DEFAULT = (
    "zinc-none",
    "zinc-rwse",
    "zinc-bpearl",
    "zinc-rpearl-paper",
    "peptides-func-bpearl:32",
    "peptides-func-bpearl:200",
)


@dataclass
class Row:
    """A line of the table; None where it was not measured."""

    name: str
    launches: int | None = None
    waits: int | None = None
    milliseconds: float | None = None
    megabytes: float | None = None
    difference: float | None = None

    def __str__(self) -> str:
        name, *values = astuple(self)
        written = zip(values, (",", "", ".1f", ",.0f", ".1g"), strict=True)
        cells = ["" if value is None else format(value, form) for value, form in written]
        return f"| {name} | {' | '.join(cells)} |"


HEADER = (
    "| training step | launches | waits | ms | peak MB | difference from the CPU |\n|---|---|---|---|---|---|"
)


class Steps:
    """Training steps of a config on one batch, on any device."""

    def __init__(self, cfg: Any, batch: Batch, device: torch.device | str) -> None:
        torch.manual_seed(0)
        self.device = torch.device(device)
        network = networks.build(cfg, batch.x.size(1), batch.y.size(1))
        loss = make_loss(cfg.model.loss_fun, cfg.dataset.task_type)
        self.task = GraphTask(network, loss, cfg.dataset.task_type, (), optim_settings(cfg))
        prepare = networks.preparation(network, "cpu" if self.device.type == "cpu" else "cuda")
        assert prepare is not None
        prepare(batch)
        self.batch = batch.pin_memory() if self.device.type == "cuda" else batch  # as the loader does
        self.task.trainer = SimpleNamespace(  # type: ignore[assignment] # what a step reads
            precision_plugin=None, accumulate_grad_batches=1
        )

    def move(self, move: Callable[[Any], Any]) -> None:
        """Put the network on the device, and make the optimiser that needs it there."""
        self.task.network = move(self.task.network)
        self.task._epoch_metrics = move(self.task._epoch_metrics)
        self.optimiser = self.task.configure_optimizers()

    def run(self) -> None:
        """One step, with the transfer of the batch."""
        batch = self.task.transfer_batch_to_device(self.batch, self.device, 0)
        self.task.training_step(batch, 0).backward()
        self.task.configure_gradient_clipping(self.optimiser)
        self.optimiser.step()
        self.optimiser.zero_grad()

    def results(self) -> list[Tensor]:
        """Prediction and gradients of one pass, on the CPU."""
        batch = self.task.transfer_batch_to_device(self.batch, self.device, 0)
        prediction, _ = self.task.network(batch)
        prediction.square().sum().backward()
        found = [prediction, *(p.grad for p in self.task.network.parameters() if p.grad is not None)]
        return [tensor.detach().cpu() for tensor in found]


def batch_of(name: str, folder: str | None) -> tuple[Any, Batch]:
    """The config ``NAME[:BATCH]`` and a batch of its size."""
    name, _, size = name.partition(":")
    cfg = config.load(CONFIGS / f"{name}.yaml", [])
    kind = "zinc" if name.startswith("zinc") else "peptides"
    graphs = load_graphs(kind, int(size or cfg.train.batch_size), folder)
    for transform in encoders.required_transforms(cfg):
        graphs = [transform(graph) for graph in graphs]
    return cfg, Batch.from_data_list(graphs)


def pretend(name: str, folder: str | None) -> tuple[Row, Counter[str], Counter[str]]:
    """Count the launches and waits of a step by line, on the pretend device."""
    from helpers.fake_gpu import FakeGPU

    cfg, batch = batch_of(name, folder)
    gpu = FakeGPU()
    with gpu:
        steps = Steps(cfg, batch, gpu.device)
        steps.move(gpu.copy)
        steps.run()  # the first step of an optimiser makes its state
        gpu.launches.clear()
        gpu.waits.clear()
        steps.run()
    return Row(name, gpu.launches.total(), gpu.waits.total()), gpu.launches, gpu.waits


def measure(name: str, folder: str | None, device: str) -> Row:
    """Launches and waits by torch's profiler, milliseconds, peak memory, and the difference from the CPU."""
    cfg, batch = batch_of(name, folder)
    steps = Steps(cfg, batch, device)
    steps.move(lambda module: module.to(device))
    for _ in range(3):
        steps.run()
    row = Row(name, difference=difference(cfg, batch, device))
    times = []
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.reset_peak_memory_stats()
        row.launches, row.waits = profiled(steps.run)
    for _ in range(10):
        began = time.perf_counter()
        steps.run()
        if cuda:
            torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - began))
    row.milliseconds = statistics.median(times)
    row.megabytes = torch.cuda.max_memory_allocated() / 1e6 if cuda else None
    return row


def profiled(step: Callable[[], None]) -> tuple[int, int]:
    """Kernels that a step launches and times that it waits, from the calls of CUDA's runtime."""
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        step()
    calls = Counter({event.key: event.count for event in profile.key_averages()})
    launches = sum(count for call, count in calls.items() if "LaunchKernel" in call or "MemcpyAsync" in call)
    return launches, sum(count for call, count in calls.items() if call.endswith("Synchronize"))


def difference(cfg: Any, batch: Batch, device: str) -> float:
    """The largest difference between CPU and device, in float64, relative to the largest entry."""
    cfg = cfg.clone()
    cfg.defrost()
    cfg.gt.dropout = cfg.gt.attn_dropout = 0.0
    wide = batch.clone().apply(lambda t: t.double() if t.is_floating_point() else t)
    found = []
    for where in ("cpu", device):
        steps = Steps(cfg, wide, where)
        steps.move(partial(_wide_on, where))
        found.append(steps.results())
    pairs = zip(*found, strict=True)
    return max(float((a - b).abs().max() / a.abs().max().clamp(min=1e-30)) for a, b in pairs if a.numel())


def _wide_on(device: str, module: torch.nn.Module) -> torch.nn.Module:
    return module.double().to(device)


def main(arguments: list[str] | None = None) -> list[Row]:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--config", nargs="+", default=list(DEFAULT), metavar="NAME[:BATCH]")
    parser.add_argument("--data", help="folder of the real datasets")
    parser.add_argument("--device", default="cuda", help="cuda, or cpu to see that the script runs")
    parser.add_argument("--pretend", action="store_true", help="count on the pretend device of the tests")
    parser.add_argument("--lines", type=int, default=0, help="with --pretend: show so many lines of code")
    args = parser.parse_args(arguments)
    if not args.pretend and args.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device; --pretend counts launches and waits without one")
    register()
    what = "pretend device" if args.pretend else args.device
    if what == "cuda":
        what = torch.cuda.get_device_name()
    print(f"torch {torch.__version__}, {what}\n\n{HEADER}", flush=True)
    rows = []
    for name in args.config:
        lines: list[tuple[str, Counter[str]]] = []
        if args.pretend:
            row, launches, waits = pretend(name, args.data)
            lines = [("launches", launches), ("waits", waits)]
        else:
            row = measure(name, args.data, args.device)
        rows.append(row)
        print(row, flush=True)
        for kind, counter in lines:
            for line, count in counter.most_common(args.lines):
                print(f"    {count:6d} {kind} {line}")
    return rows


if __name__ == "__main__":
    main()
