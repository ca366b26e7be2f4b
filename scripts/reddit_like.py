"""Data in the format and with the sizes of REDDIT-BINARY or REDDIT-MULTI-5K, and what encodings cost on it.

    python scripts/reddit_like.py make FOLDER [--name REDDIT-BINARY] [--graphs 2000] [--seed 0]
    python scripts/reddit_like.py time FOLDER [--encoders none randomid ...] [--batches 3]

``make`` writes the public text files of a made-up dataset: discussion threads, a node for every user, whose
numbers of nodes and edges have the public mean, median and maximum. Classes differ in shape: a few users who
answer many, or many who answer each other. Train on it with ``dataset.path FOLDER dataset.check_totals
False``; its accuracies say nothing about the real data. ``time`` trains some batches of 70 with each
``reddit-b-*`` config in a process of its own, on one thread, and scales its processor time to an epoch of
1,600 graphs, eight of the ten folds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a checkout need not be installed

#: Graphs, classes, median and mean of the nodes, fewest and most nodes, edges for each node.
FACTS = {
    "REDDIT-BINARY": (2000, 2, 304, 429.6, 6, 3782, 1.159),
    "REDDIT-MULTI-5K": (4999, 5, 374, 508.5, 22, 3648, 1.170),
}
ENCODERS = ("none", "randomid", "gsn-cliques", "signnet-8s", "signnet-8l", "rpearl")
BATCH, TRAINING_GRAPHS = 70, 1600  # of the paper; eight of the ten folds


def sizes(name: str, graphs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of nodes: log-normal with the public median and mean, the largest is the public one."""
    _, _, median, mean, fewest, most, _ = FACTS[name]
    spread = np.sqrt(2 * np.log(mean / median))
    drawn = np.clip(median * np.exp(spread * rng.standard_normal(graphs)), fewest, most).astype(np.int64)
    drawn[0] = most
    return rng.permutation(drawn)


def thread(nodes: int, kind: float, density: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Edges [E, 2] of a thread: a tree, the nearer to stars the larger ``kind``, and more answers."""
    hubs = max(1, round(nodes**0.5 * (1 - kind)))
    earlier = np.arange(1, nodes)
    to_hub = rng.random(nodes - 1) < 0.35 + 0.6 * kind
    target = np.where(to_hub, rng.integers(0, np.minimum(hubs, earlier)), rng.integers(0, earlier))
    tree = np.stack((target, earlier), axis=1)
    more = rng.integers(0, nodes, (max(0, round(nodes * density) - nodes + 1), 2))
    edges = np.concatenate((tree, more[more[:, 0] != more[:, 1]]))
    return np.unique(np.sort(edges, axis=1), axis=0)


def make(folder: Path, name: str, graphs: int, seed: int) -> None:
    """Write ``NAME_A.txt``, ``NAME_graph_indicator.txt`` and ``NAME_graph_labels.txt``."""
    rng = np.random.default_rng(seed)
    classes, density = FACTS[name][1], FACTS[name][-1]
    folder.mkdir(parents=True, exist_ok=True)
    start, labels = 1, []
    with (
        (folder / f"{name}_A.txt").open("w") as pairs,
        (folder / f"{name}_graph_indicator.txt").open("w") as owners,
    ):
        for number, nodes in enumerate(sizes(name, graphs, rng), start=1):
            # The largest is a star, for its hub of thousands.
            label = classes - 1 if nodes == FACTS[name][5] else int(rng.integers(classes))
            edges = start + thread(int(nodes), label / (classes - 1), density, rng)
            both = np.concatenate((edges, edges[:, ::-1]))
            pairs.write("".join(f"{a}, {b}\n" for a, b in both[both[:, 0].argsort(kind="stable")].tolist()))
            owners.write(f"{number}\n" * int(nodes))
            labels.append((-1) ** label if classes == 2 else label + 1)
            start += int(nodes)
    (folder / f"{name}_graph_labels.txt").write_text("".join(f"{label}\n" for label in labels))


def one(folder: Path, encoder: str, batches: int) -> None:
    """Train some batches and print seconds for a batch, peak memory and seconds of preparation."""
    import torch

    from graphgps_pearl import config, data
    from graphgps_pearl.registry import register
    from graphgps_pearl.training.losses import make_loss
    from graphgps_pearl.training.recorder import peak_memory_mb
    from graphgps_pearl.training.run import prepare

    register()
    words = ["dataset.path", str(folder), "dataset.check_totals", False, "dataset.dir", f"{folder}/prepared"]
    words += ["train.batch_size", BATCH]
    cfg = config.load(ROOT / "configs" / f"reddit-b-{encoder}.yaml", words)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    began = time.process_time()
    network, parts, bundle = prepare(cfg)
    preparing = time.process_time() - began if bundle.prepare_seconds else 0.0
    loader = data.make_loader(bundle.splits["train"], cfg, shuffle=True)
    loss = make_loss(cfg.model.loss_fun, bundle.spec.task_type)
    optimizer = torch.optim.AdamW(network.parameters())
    seconds, nodes = [], 0
    for number, batch in enumerate(loader):
        if number > batches:
            break
        began = time.process_time()
        pred, true = network(batch)
        loss(pred, true).backward()
        optimizer.step()
        optimizer.zero_grad()
        if number:  # the first one warms up
            seconds.append(time.process_time() - began)
            nodes += batch.num_nodes
    epoch = float(np.mean(seconds)) * TRAINING_GRAPHS / BATCH
    prepared = preparing * 1000 / sum(map(len, bundle.splits.values()))
    print(
        f"{encoder:<12} {sum(parts.values()):>8,} parameters, {epoch:6.1f} s an epoch, "
        f"{peak_memory_mb():6.0f} MB, {prepared:6.1f} s to prepare 1000 graphs "
        f"({nodes // len(seconds):,} nodes a batch)",
        flush=True,
    )


def main(arguments: list[str] | None = None) -> None:
    """``make`` or ``time``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("make", "time", "one"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--name", choices=FACTS, default="REDDIT-BINARY")
    parser.add_argument("--graphs", type=int, default=0, help="how many (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--encoders", nargs="+", default=list(ENCODERS))
    parser.add_argument("--batches", type=int, default=3)
    options = parser.parse_args(arguments)
    if options.what == "make":
        make(options.folder, options.name, options.graphs or FACTS[options.name][0], options.seed)
    elif options.what == "one":
        one(options.folder, options.encoders[0], options.batches)
    else:
        for encoder in options.encoders:
            words = ["one", str(options.folder), "--encoders", encoder, "--batches", str(options.batches)]
            subprocess.run([sys.executable, __file__, *words], check=False)


if __name__ == "__main__":
    main()
