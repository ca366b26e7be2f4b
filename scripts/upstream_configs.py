"""Which configs of a GraphGPS checkout load here, and which train; for docs/coming-from-graphgps.md.

    python scripts/upstream_configs.py PATH/TO/GraphGPS [--write docs/coming-from-graphgps.md]

A config trains if a step of training and an evaluation on small data in its dataset's public format have
finite losses. Batches have at most eight graphs; everything else is as the config says.
"""

from __future__ import annotations

import argparse
import logging
import math
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))  # for the small files
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a checkout need not be installed

import torch
from helpers.public_files import write_small
from yacs.config import CfgNode

from graphgps_pearl import config, data
from graphgps_pearl.errors import UserError
from graphgps_pearl.registry import register
from graphgps_pearl.training.losses import make_loss
from graphgps_pearl.training.metrics import EpochMetrics, best_metric
from graphgps_pearl.training.run import optim_settings, prepare
from graphgps_pearl.training.schedules import make_optimizer

#: Rows of the table: a title, and how the names of its configs begin.
FAMILIES = {
    "ZINC": ("zinc",),
    "Peptides-func, Peptides-struct": ("peptides",),
    "ogbg-molhiv, molpcba, ppa, code2": ("ogbg",),
    "PCQM4Mv2": ("pcqm4m",),
    "PATTERN, CLUSTER": ("pattern", "cluster"),
    "CIFAR10, MNIST superpixels": ("cifar10", "mnist"),
    "MalNet-Tiny": ("malnettiny",),
    "PascalVOC-SP, COCO-SP": ("vocsuperpixels", "cocosuperpixels"),
    "PCQM-Contact": ("pcqm-contact",),
    "Actor, WebKB, WikipediaNetwork": ("actor", "webkb", "wn"),
}
BEGIN, END = "<!-- begin: made by scripts/upstream_configs.py -->\n", "<!-- end -->\n"


def why_not(file: Path, folder: Path) -> tuple[str, str]:
    """Why a config does not load, and why it does not train; empty where it does. ``folder`` keeps the
    data."""
    try:
        cfg = config.load(file)
    except UserError as error:
        return str(error), str(error)
    try:
        data.declared(cfg)  # an unknown dataset is said before its files are made
        place = folder / f"{cfg.dataset.format}-{cfg.dataset.name}"
        if not place.is_dir():
            write_small(place, cfg.dataset.format, cfg.dataset.name)
        words = ["dataset.path", place, "dataset.dir", place / "prepared", "dataset.check_totals", False]
        words += ["num_workers", 0, "train.batch_size", min(8, cfg.train.batch_size)]
        take_a_step(config.load(file, [str(word) for word in words]))
    except UserError as error:
        return "", str(error)
    return "", ""


def take_a_step(cfg: CfgNode) -> None:
    """One step of training and an evaluation; UserError where a loss is not finite."""
    torch.manual_seed(0)
    known = data.declared(cfg)
    loss = make_loss(cfg.model.loss_fun, known.task_type, known.task)
    metric, _ = best_metric(cfg.metric_best, cfg.metric_agg, known.task_type, (), known.task)
    network, _, bundle = prepare(cfg)
    optim = optim_settings(cfg)
    optimizer = make_optimizer(
        optim.optimizer,
        list(network.parameters()),
        base_lr=optim.base_lr,
        weight_decay=optim.weight_decay,
        momentum=optim.momentum,
    )
    batches = {
        split: next(iter(data.make_loader(part, cfg, shuffle=False))) for split, part in bundle.splits.items()
    }
    step = loss(*network.train()(batches["train"]))
    step.backward()
    optimizer.step()
    with torch.no_grad():
        pred, true = network.eval()(batches["val"])
        metrics = EpochMetrics(known.task_type, None, None, known.task)
        metrics.update(pred, true, loss(pred, true))
    values = metrics.compute()
    if not math.isfinite(step.item()) or not math.isfinite(values["loss"]) or metric not in values:
        raise UserError(f"loss {step.item()} in training, {values} in evaluation")


def tables(files: list[Path], reasons: dict[Path, tuple[str, str]], checkout: Path) -> str:
    """The table of families, and a table of what does not train."""
    total: Counter[str] = Counter()
    lines = ["| dataset family | configs | load | train |", "|---|---|---|---|"]
    for title, starts in FAMILIES.items():
        ours = [file for file in files if file.name.startswith(starts)]
        loads = sum(not reasons[file][0] for file in ours)
        trains = sum(not reasons[file][1] for file in ours)
        total.update(configs=len(ours), load=loads, train=trains)
        lines.append(f"| {title} | {len(ours)} | {loads} | {trains} |")
    lines.append(f"| all | {total['configs']} | {total['load']} | {total['train']} |")
    lines += ["", "| does not train | because |", "|---|---|"]
    for file, (load, train) in reasons.items():
        if train:
            text = re.sub(rf"^{re.escape(str(file))}(:\d+)?: ", "", train).replace("|", "\\|")
            text = re.sub(r" \(there are [^)]*\)$", "", text)  # a list that changes with every encoder
            text = f"does not load: {text}" if load else text
            lines.append(f"| `{file.relative_to(checkout / 'configs')}` | {text} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the tables, or write them to a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="folder of a GraphGPS checkout")
    parser.add_argument("--write", type=Path, help="page whose tables are replaced")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    register()
    files = sorted((args.checkout / "configs").rglob("*.yaml"))
    with tempfile.TemporaryDirectory() as folder:
        reasons = {file: why_not(file, Path(folder)) for file in files}
    text = tables(files, reasons, args.checkout)
    if args.write is None:
        print(text, end="")
        return
    before, _, rest = args.write.read_text().partition(BEGIN)
    args.write.write_text(before + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
