"""Suites of training: a step (gps), many steps (epoch), and plans made beforehand (plan)."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from baselines.dense_gps import DenseGPS
from torch import nn
from torch_geometric.data import Batch, Data

from graphgps_pearl import config, data, encoders, networks
from graphgps_pearl.data import cache
from graphgps_pearl.data.parallel import Prepared
from graphgps_pearl.data.table import GraphTable
from graphgps_pearl.pearl import BPEARL, BPEARLPlan, stored_plan
from graphgps_pearl.training.schedules import make_optimizer
from suites.case import Case, Step
from suites.graphs import CONFIGS, load_graphs

DENSE_BATCH = 32  # peptides; dense attention does not fit with more
PEPTIDES = 15_535  # in the whole dataset
PLANNED = 512  # peptides whose plans two workers make
Train = Callable[[Iterable[Batch]], None]


def gps_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """A training step of the shipped configs, against dense-padded GPS without encoding."""
    for kind, count in (("zinc", 32), ("peptides", args.gps_peptides_batch)):
        graphs = load_graphs(kind, 4 if args.toy else count, args.data)
        for name in (f"{kind}-bpearl", f"{kind}-none"):
            yield Case(
                "gps",
                f"step of {name}, batch {len(graphs)}, against dense GPS without encoding",
                partial(_step, graphs, _config(name, args.toy), dense=False),
                partial(_step, graphs, _config(f"{kind}-none", args.toy), dense=True),
            )


def epoch_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """A pass over many peptides in the batches of the config, against dense GPS in batches that fit."""
    graphs = load_graphs("peptides", 6 if args.toy else args.epoch_peptides, args.data)
    ours, plain = _config("peptides-bpearl-paper", args.toy), _config("peptides-none", args.toy)
    # as many graphs to a step of the optimiser as the config has, in parts
    parts = plain.train.batch_size // DENSE_BATCH
    parts_of = ["train.batch_size", str(DENSE_BATCH), "optim.batch_accumulation", str(parts)]
    plain = _config("peptides-none", args.toy, *parts_of)
    yield Case(
        "epoch",
        f"{len(graphs):,} peptides, peptides-bpearl-paper in batches of {ours.train.batch_size}, "
        f"against dense GPS in batches of {DENSE_BATCH}",
        partial(_epoch, graphs, ours, dense=False),
        partial(_epoch, graphs, plain, dense=True),
        memory=False,
        once=True,
    )


def _config(name: str, toy: bool, *settings: str) -> Any:
    return config.load(CONFIGS / f"{name}.yaml", [*(["gt.layers", "1"] if toy else []), *settings])


def _step(graphs: Sequence[Data], cfg: Any, dense: bool) -> Step:
    batch = Batch.from_data_list(list(graphs))
    train = _training(graphs[0], cfg, dense, accumulate=1)
    return lambda: train([batch])


def _epoch(graphs: Sequence[Data], cfg: Any, dense: bool) -> Step:
    train = _training(graphs[0], cfg, dense, cfg.optim.batch_accumulation)
    train([Batch.from_data_list(list(graphs[:2]))])
    loader = data.make_loader(graphs, cfg, shuffle=True)
    return lambda: train(loader)


def _training(graph: Data, cfg: Any, dense: bool, accumulate: int) -> Train:
    """Trains a new network on batches, with a step of the optimiser after every ``accumulate`` of them."""
    torch.manual_seed(0)
    network = networks.build(cfg, graph.x.size(1), graph.y.size(1))
    if dense:
        network = DenseGPS(cfg, network)
    parameters = list(network.parameters())
    # the baseline steps as GraphGPS does, with torch's default; ours as training here does
    ours = make_optimizer("adamW", parameters, base_lr=1e-3, weight_decay=0.01)
    optimiser = torch.optim.AdamW(parameters) if dense else ours

    def train(batches: Iterable[Batch]) -> None:
        for number, batch in enumerate(batches, start=1):
            prediction, _ = network(batch)
            prediction.abs().mean().backward()
            if number % accumulate == 0:
                nn.utils.clip_grad_norm_(parameters, 1.0)
                optimiser.step()
                optimiser.zero_grad()

    return train


def plan_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """Plans stored with the graphs against plans found in every batch; and what storing takes."""
    for kind, count, layers in (("zinc", 32, 8), ("peptides", args.gps_peptides_batch, 9)):
        graphs = load_graphs(kind, 4 if args.toy else count, args.data)
        transform = BPEARLPlan(num_taps=1, num_layers=layers)
        began = time.process_time()
        planned = [transform(graph.clone()) for graph in graphs]
        seconds = (time.process_time() - began) / len(graphs)
        size = (_bytes_on_disk(planned) - _bytes_on_disk(graphs)) / len(graphs)
        note = f"plan, {kind}: {1000 * seconds:.1f} ms of processor time, {size / 1e3:.1f} kB on disk a graph"
        if kind == "peptides":
            note += f"; extrapolated to all {PEPTIDES:,}: {PEPTIDES * size / 1e9:.2f} GB"
        yield note
        pe = BPEARL(dim_pe=28, num_layers=layers)
        yield Case(
            "plan",
            f"B-PEARL with stored plans, {kind}, batch {len(graphs)}, against plans found in the batch",
            partial(_encode, pe, Batch.from_data_list(planned)),
            partial(_encode, pe, Batch.from_data_list(graphs)),
            memory=False,
        )
    graphs = load_graphs("peptides", 4 if args.toy else PLANNED, args.data)
    cfg = _config("peptides-bpearl-paper", args.toy)
    yield Case(
        "plan",
        f"plans of 1,000 peptides by two workers, against an epoch of them ({len(graphs)} run)",
        partial(_make_plans, graphs),
        partial(_epoch, graphs, cfg, dense=False),
        memory=False,
        once=True,
        wall=True,
        scale=1000 / len(graphs),
    )


def _encode(pe: BPEARL, batch: Batch) -> Step:
    return lambda: pe(batch.edge_index, batch.batch, plan=stored_plan(batch)).sum().backward()


def _bytes_on_disk(graphs: Sequence[Data]) -> int:
    """The file of a prepared dataset with these graphs."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "prepared.pt"
        cache.save({"graphs": GraphTable.from_graphs(graphs).to_state()}, file)
        return file.stat().st_size


def _make_plans(graphs: Sequence[Data]) -> Step:
    """All plans of ``peptides-bpearl-paper`` by two processes, which start anew each time."""
    cfg = config.load(CONFIGS / "peptides-bpearl-paper.yaml", ["posenc_BPEARL.plan", "cached"])
    prepared = Prepared(GraphTable.from_graphs(graphs), encoders.required_transforms(cfg), "Peptides")
    return lambda: GraphTable.join(list(prepared.in_parts(num_workers=2)))
