"""How far a trained model's predictions move because evaluation fixes the statistics of the batch norms.

    python scripts/norm_shift.py MODEL [--graphs 2560] [KEY VALUE ...]

    python scripts/norm_shift.py wehi-logp
    python scripts/norm_shift.py zinc-bpearl dataset.dir DIR

MODEL is what ``graphgps_pearl.load`` takes, a regression on graphs. Training graphs in shuffled batches pass
through the network with the statistics of their batch, as in training, and with the fixed ones, as in
evaluation, each with dropout and without. Printed are the mean absolute error and the median of prediction
minus target. ``train.bn_reestimate`` estimates statistics that fit the evaluated function.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed

import graphgps_pearl
from graphgps_pearl import config, data
from graphgps_pearl.training.evaluation_weights import norms_of


@torch.no_grad()
def errors(network: nn.Module, batches: Iterable[Batch], *, fixed: bool, dropout: bool) -> Tensor:
    """Predictions minus targets, with fixed or batch statistics; the network stays as it is."""
    network = copy.deepcopy(network).train(dropout)
    for norm in norms_of(network):
        norm.train(not fixed)
    torch.manual_seed(0)
    return torch.cat([torch.sub(*network(batch)).flatten() for batch in batches])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model")
    parser.add_argument("--graphs", type=int, default=2560)
    parser.add_argument("overrides", nargs="*", metavar="KEY VALUE")
    args = parser.parse_intermixed_args(arguments)
    model = graphgps_pearl.load(args.model, "cpu")
    if (model.facts.task, model.facts.task_type) != ("graph", "regression"):
        parser.error(f"{args.model} is no regression on graphs: it has no absolute error")
    cfg = config.parse(config.dump(model.cfg), args.overrides)
    bundle = data.load(cfg)
    torch.manual_seed(0)
    loader = data.make_loader(bundle.splits["train"], cfg, shuffle=True)
    batches = list(islice(loader, -(-args.graphs // cfg.train.batch_size)))
    print(f"{args.model}: {sum(b.num_graphs for b in batches):,} training graphs, targets as in training")
    print(f"{'statistics':<12}{'dropout':<9}{'error':>8}{'median':>9}")
    for fixed in (False, True):
        for dropout in (True, False):
            found = errors(model.network, batches, fixed=fixed, dropout=dropout)
            words = f"{'fixed' if fixed else 'batch':<12}{'on' if dropout else 'off':<9}"
            print(f"{words}{found.abs().mean():>8.4f}{found.median():>+9.4f}")


if __name__ == "__main__":
    main()
