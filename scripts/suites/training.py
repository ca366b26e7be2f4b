"""Suites of training: a step (gps) and many steps (epoch)."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from baselines.dense_gps import DenseGPS
from torch import nn
from torch_geometric.data import Batch, Data

from graphgps_pearl import config, data, networks
from graphgps_pearl.switches import use_kernels
from graphgps_pearl.training.schedules import make_optimizer
from suites.case import Case, Step
from suites.graphs import CONFIGS, load_graphs

DENSE_BATCH = 32  # peptides; dense attention does not fit with more
Train = Callable[[Iterable[Batch]], None]


def gps_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """A training step of the shipped configs, against dense-padded GPS without encoding."""
    for kind, count in (("zinc", 32), ("peptides", args.gps_peptides_batch)):
        graphs = load_graphs(kind, 4 if args.toy else count, args.data)
        for name in (f"{kind}-bpearl", f"{kind}-none"):
            yield Case(
                "gps",
                f"step of {name}, batch {len(graphs)}, against dense GPS without encoding",
                partial(make_step, graphs, load_config(name, args.toy), dense=False),
                partial(make_step, graphs, load_config(f"{kind}-none", args.toy), dense=True),
            )


def epoch_suite(args: argparse.Namespace) -> Iterator[Case | str]:
    """A pass over many peptides in the batches of the config, against dense GPS in batches that fit."""
    graphs = load_graphs("peptides", 6 if args.toy else args.epoch_peptides, args.data)
    ours, plain = load_config("peptides-bpearl-paper", args.toy), load_config("peptides-none", args.toy)
    # as many graphs to a step of the optimiser as the config has, in parts
    parts = plain.train.batch_size // DENSE_BATCH
    parts_of = ["train.batch_size", str(DENSE_BATCH), "optim.batch_accumulation", str(parts)]
    plain = load_config("peptides-none", args.toy, *parts_of)
    yield Case(
        "epoch",
        f"{len(graphs):,} peptides, peptides-bpearl-paper in batches of {ours.train.batch_size}, "
        f"against dense GPS in batches of {DENSE_BATCH}",
        partial(_epoch, graphs, ours, dense=False),
        partial(_epoch, graphs, plain, dense=True),
        memory=False,
        once=True,
    )


def load_config(name: str, toy: bool, *settings: str) -> Any:
    """A shipped config; a toy has one layer."""
    return config.load(CONFIGS / f"{name}.yaml", [*(["gt.layers", "1"] if toy else []), *settings])


def make_step(
    graphs: Sequence[Data], cfg: Any, dense: bool, prepared: bool = False, native: bool = True
) -> Step:
    """A step on one batch, which a worker may have prepared; ``native=False``: no compiled kernels."""
    batch = Batch.from_data_list(list(graphs))
    network, train = make_training(graphs[0], cfg, dense, accumulate=1)
    prepare = networks.preparation(network, "cpu") if prepared else None
    if prepare is not None:
        prepare(batch)

    def step() -> None:
        with use_kernels(True, native):
            train([batch])

    return step


def _epoch(graphs: Sequence[Data], cfg: Any, dense: bool) -> Step:
    _, train = make_training(graphs[0], cfg, dense, cfg.optim.batch_accumulation)
    train([Batch.from_data_list(list(graphs[:2]))])
    loader = data.make_loader(graphs, cfg, shuffle=True)
    return lambda: train(loader)


def make_training(graph: Data, cfg: Any, dense: bool, accumulate: int) -> tuple[nn.Module, Train]:
    """A new network, and what trains it on batches: an optimiser step after every ``accumulate`` of them."""
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

    return network, train
