"""What an encoding costs: training against no encoding (cost); error of R-PEARL against time (samples)."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch_geometric.data import Batch

from graphgps_pearl import data, networks
from graphgps_pearl.compiled import keep_buffers
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.errors import UserError
from graphgps_pearl.pearl import RPEARL
from graphgps_pearl.switches import use_kernels
from graphgps_pearl.training.evaluation_weights import Average
from suites.case import Case, Step
from suites.graphs import load_graphs
from suites.training import load_config, make_step, make_training

CONFIGS = {
    "zinc": ("zinc-rpearl", "zinc-rpearl-paper", "zinc-bpearl", "zinc-bpearl-paper", "zinc-bpearl-plus"),
    "peptides": ("peptides-bpearl", "peptides-bpearl-paper"),
    "drugood": ("drugood-rpearl", "drugood-rpearl-paper", "drugood-bpearl", "drugood-bpearl-paper"),
}
BATCHES = {"zinc": 32, "peptides": 16}
PART = 15  # of DrugOOD every so many batches are run, of training and of evaluation alike


def cost_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """A training step against one without an encoding; for DrugOOD an epoch with evaluation."""
    for kind, count in BATCHES.items():
        graphs = load_graphs(kind, 4 if args.toy else count, args.data)
        batches = [Batch.from_data_list(graphs)]
        for name in CONFIGS[kind]:
            yield _against_none(kind, name, f"step of {name}, batch {len(graphs)}", args.toy, batches, [])
        for name in (f"{kind}-none", f"{kind}-bpearl"):
            step = partial(make_step, graphs, load_config(name, args.toy), dense=False)
            for text, ours, other in (
                ("compiled kernels, against torch alone", step, partial(step, native=False)),
                ("a batch that a worker prepared, against without", partial(step, prepared=True), step),
            ):
                yield Case("cost", f"step of {name} with {text}", ours, other, memory=False)
        table = GraphTable.from_graphs(graphs)
        text = f"{len(graphs)} graphs of {kind} joined to a batch, against PyG's way"
        yield Case("cost", text, partial(_joined, table, False), partial(_joined, table, True), memory=False)
        name = f"{kind}-bpearl"
        average = partial(_averaged, load_config(name, args.toy), batches[0])
        text = f"average of the weights of {name}, against torch's AveragedModel"
        yield Case("cost", text, average, partial(average, torchs=True), memory=False)
    cfg = load_config("peptides-bpearl", args.toy)
    graphs = load_graphs("peptides", 4 if args.toy else cfg.train.batch_size, args.data)
    step = partial(make_step, graphs, cfg, dense=False)
    text = f"step of peptides-bpearl, batch {len(graphs)}, in kept buffers, against new ones"
    yield Case("cost", text, step, partial(_in_new_buffers, step), memory=False)
    if args.data is None:
        return
    settings = ["dataset.dir", args.data, "dataset.name", "lbap_core_ec50_assay"]
    cfg = load_config("drugood-none", args.toy, *settings)
    try:
        splits = data.load(cfg).splits
    except UserError as error:
        yield f"drugood: left out ({error})"
        return
    torch.manual_seed(0)
    train, *others = (
        list(data.make_loader(graphs, cfg, shuffle=name == "train"))[::PART]
        for name, graphs in splits.items()
    )
    evaluated = [batch for batches in others for batch in batches]
    for name in CONFIGS["drugood"]:
        text = f"epoch of {name} with evaluation, every {PART}th batch"
        yield _against_none("drugood", name, text, args.toy, train, evaluated)
    name = "drugood-bpearl-paper"
    compiled, plain = (
        partial(_passes, load_config(name, args.toy), [], evaluated, native) for native in (True, False)
    )
    text = f"evaluation of {name}, every {PART}th batch, with compiled kernels, against torch alone"
    yield Case("cost", text, compiled, plain, memory=False)


def _joined(table: GraphTable, pyg: bool) -> Step:
    """Ten batches of all graphs."""
    numbers = list(range(len(table)))
    if pyg:
        return lambda: [Batch.from_data_list([table[i] for i in numbers]) for _ in range(10)]
    return lambda: [table.batch(numbers) for _ in range(10)]


def _averaged(cfg: Any, batch: Batch, torchs: bool = False) -> Step:
    """Ten updates of the averaged weights."""
    network = networks.build(cfg, batch.x.size(1), batch.y.size(1))
    update = (
        partial(_by_torch(network).update_parameters, network) if torchs else Average(network, 0.999).update
    )

    def run() -> None:
        for _ in range(10):
            update()

    return run


def _by_torch(network: nn.Module) -> AveragedModel:
    def step(old: Any, new: Any, count: Any) -> None:
        get_ema_multi_avg_fn(0.999 if old[0].is_floating_point() else 0.0)(old, new, count)

    return AveragedModel(network, multi_avg_fn=step, use_buffers=True)


def _in_new_buffers(make: Callable[[], Step]) -> Step:
    step = make()

    def run() -> None:
        keep_buffers(False)  # what the other side keeps stays, for its next turn
        step()
        keep_buffers()

    return run


def _against_none(
    kind: str, name: str, text: str, toy: bool, train: Sequence[Batch], evaluated: Sequence[Batch]
) -> Case:
    ours, none = (
        partial(_passes, load_config(config, toy), train, evaluated) for config in (name, f"{kind}-none")
    )
    return Case("cost", f"{text}, against {kind}-none", ours, none, memory=False)


def _passes(cfg: Any, train: Sequence[Batch], evaluated: Sequence[Batch], native: bool = True) -> Step:
    """One step for each batch of training, one prediction for each of evaluation."""
    network, steps = make_training([*train, *evaluated][0], cfg, dense=False, accumulate=1)

    def run() -> None:
        network.train()
        steps(train)
        network.eval()
        with torch.inference_mode(), use_kernels(True, native):
            for batch in evaluated:
                network(batch)

    return run


def samples_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """Error of R-PEARL's estimate against the time of a step of the encoding, for each distribution."""
    graphs = load_graphs("zinc", 4 if args.toy else 32, args.data)
    batch = Batch.from_data_list(graphs)
    tables, most = (2, 50) if args.toy else (8, 4000)
    yield "error of an untrained encoding as a share of the deviation between nodes, and time of a step of it"
    for name in ("zinc-rpearl", "zinc-rpearl-paper"):
        module = _encoding(name, batch)
        for distribution in ("gaussian", "rademacher", "sobol"):
            module.distribution = "gaussian" if distribution == "sobol" else distribution
            exact = _evaluate(module, batch, most, seed=-1)
            spread = (exact - exact.mean(0)).square().mean().sqrt()
            module.distribution = distribution
            line = []
            for count in (10, 50) if args.toy else (10, 20, 35, 50, 70, 100):
                found = torch.stack([_evaluate(module, batch, count, seed) for seed in range(tables)])
                error = (found - exact).square().mean().sqrt() / spread
                line.append(f"M = {count}: {float(error):.3f} in {_milliseconds(module, batch):.0f} ms")
            yield f"{name:18s} {distribution:10s} " + "; ".join(line)


def _encoding(name: str, batch: Batch) -> RPEARL:
    """The encoding of a config with new weights, and running statistics of this batch."""
    torch.manual_seed(0)
    cfg = load_config(name, False)
    network = networks.build(cfg, batch.x.size(1), 1)
    module = next(part for part in network.modules() if isinstance(part, RPEARL))
    with torch.no_grad():
        for _ in range(30):
            module(batch)
    return module


def _evaluate(module: RPEARL, batch: Batch, count: int, seed: int) -> Tensor:
    module.eval()
    module.num_samples, module.eval_seed, module.chunk_size = count, seed, 100
    with torch.no_grad():
        return module(batch)


def _milliseconds(module: RPEARL, batch: Batch) -> float:
    """Of processor time for a step of the encoding alone."""
    statistics_before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    module.train()
    module.chunk_size = None
    taken = []
    for _ in range(4):
        began = time.process_time()
        module(batch).square().sum().backward()
        taken.append(1000 * (time.process_time() - began))
    module.load_state_dict(statistics_before, strict=False)
    return statistics.median(taken[1:])
